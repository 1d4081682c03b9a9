// Goes through the launches of every sequence and finds those that begin a cell.
#include "lowering/stack/host_waits.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace stratagem::lowering {
namespace {

using placement::Cell;
using placement::CellPass;
using program::HostWait;
using program::StoredCall;
using program::Stream;
using program::Task;

/// As HostWait::of_task.
constexpr int all_streams = -1;
constexpr int computations = static_cast<int>(Stream::compute);

class HostWaits {
 public:
  HostWaits(const program::Program& program, program::Sequence& sequence, const cost::Stack& stack,
            int last_stage, bool shared)
      : program_(program),
        sequence_(sequence),
        stack_(stack),
        last_stage_(last_stage),
        shared_(shared) {}

  void write() {
    if (!shared_ || each_launch()) begin_cells();
    for (StoredCall& call : sequence_.calls.stored()) {
      if (each_launch()) call.host_waits.push_back({-1, -1, all_streams});
      for (const program::Wait& wait : call.waits) {
        if (!shared_ && tasks(call)[wait.task].stream == Stream::parameter_communication)
          call.host_waits.push_back({wait.task, wait.of_call, wait.of_task});
      }
      std::ranges::sort(call.host_waits);
    }
  }

 private:
  [[nodiscard]] const std::vector<Task>& tasks(const StoredCall& call) const {
    return program_.blocks[call.block].tasks;
  }

  [[nodiscard]] bool each_launch() const { return says(stack_, cost::HostWaits::each_launch); }

  /// Does the stage exchange tensors with others?
  [[nodiscard]] bool exchanges() const {
    return std::ranges::any_of(sequence_.calls.stored(), [&](const StoredCall& call) {
      return std::ranges::any_of(tasks(call), &program::transfers, &Task::stream);
    });
  }

  void begin_cells() {
    const bool exchanged = exchanges();
    const bool receives = exchanged && says(stack_, cost::HostWaits::each_received_pass);
    const bool batches = says(stack_, cost::HostWaits::each_micro_batch);
    const bool all = each_launch() || says(stack_, cost::HostWaits::each_pass) ||
                     (exchanged && says(stack_, cost::HostWaits::each_exchange));
    const std::vector<int> beside = program::first_beside(sequence_);
    std::optional<Cell> current;
    program::each_launch(program_, sequence_, [&](const program::Launch& launch) {
      StoredCall& call = sequence_.calls.stored()[launch.call];
      const int task = first_computation(call);
      if (task < launch.first || task >= launch.end) return;
      const Cell& cell = sequence_.calls.stored()[beside[launch.call]].cell;
      const bool waits =
          all || (batches && first_of_micro_batch(cell)) || (receives && is_received(cell));
      if (current != cell && waits) begin(call, task, all ? all_streams : computations);
      current = cell;
    });
  }

  static bool first_of_micro_batch(const Cell& cell) {
    return cell.pass == CellPass::forward && cell.slice == 0 && cell.repeat == 0;
  }
  /// Does the cell begin with what another stage sent?
  [[nodiscard]] bool is_received(const Cell& cell) const {
    return cell.stage != (cell.pass == CellPass::forward ? 0 : last_stage_);
  }

  /// -1 if a call is of no segment, or gathers weights ahead of those that read them.
  [[nodiscard]] int first_computation(const StoredCall& call) const {
    const std::vector<Task>& all = tasks(call);
    const auto is = [&](Stream stream) { return std::ranges::find(all, stream, &Task::stream); };
    if (call.segment < 0 || is(Stream::parameter_communication) != all.end()) return -1;
    const auto found = is(Stream::compute);
    return found == all.end() ? -1 : static_cast<int>(found - all.begin());
  }

  void begin(StoredCall& call, int task, int streams) const {
    call.host_waits.push_back({task, -1, streams});
    for (const program::Wait& wait : call.waits) {
      const Stream from = tasks(sequence_.calls.stored()[wait.of_call])[wait.of_task].stream;
      if (from == Stream::receive_forward || from == Stream::receive_backward)
        call.host_waits.push_back({task, wait.of_call, wait.of_task});
    }
  }

  const program::Program& program_;
  program::Sequence& sequence_;
  const cost::Stack& stack_;
  int last_stage_;
  bool shared_;
};

/// An irregular stage counts as a grid of its own.
bool same_grid(const program::Program& program, const StoredCall& one, const StoredCall& other) {
  if (one.grid < 0 || other.grid < 0) return one.cell.stage == other.cell.stage;
  return program.grids[one.grid] == program.grids[other.grid];
}

/// Do stages on different grids share devices?
bool shares_devices(const program::Program& program, const program::Sequence& sequence) {
  const StoredCall* before = nullptr;
  return std::ranges::any_of(sequence.calls.stored(), [&](const StoredCall& call) {
    if (call.segment < 0) return false;
    const StoredCall* last = std::exchange(before, &call);
    return last != nullptr && !same_grid(program, *last, call);
  });
}

}  // namespace

void add_host_waits(program::Program& program, const cost::Stack& stack) {
  int last_stage = 0;
  for (const program::Sequence& sequence : program.sequences) {
    for (const StoredCall& call : sequence.calls.stored())
      last_stage = std::max(last_stage, call.cell.stage);
  }
  const bool shared = std::ranges::any_of(
      program.sequences,
      [&](const program::Sequence& sequence) { return shares_devices(program, sequence); });
  for (program::Sequence& sequence : program.sequences)
    HostWaits(program, sequence, stack, last_stage, shared).write();
}

}  // namespace stratagem::lowering

// Goes through the launches of every sequence and finds those that begin a cell.
#include "lowering/stack/host_waits.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "cost/rule_kinds.hpp"
#include "program/check/check.hpp"

namespace stratagem::lowering {
namespace {

using placement::Cell;
using placement::CellPass;
using program::StoredCall;
using program::Stream;
using program::Task;

/// As program::HostWait::of_task.
constexpr int all_streams = -1;
constexpr int computations = static_cast<int>(Stream::compute);

class HostWaits {
 public:
  HostWaits(const program::Program& program, program::Sequence& sequence, const cost::Stack& stack,
            int last_stage)
      : program_(program), sequence_(sequence), stack_(stack), last_stage_(last_stage) {}

  void write() {
    begin_cells();
    for (StoredCall& call : sequence_.calls.stored()) {
      if (each_launch()) call.host_waits.push_back({-1, -1, all_streams});
      for (const program::Wait& wait : call.waits) {
        if (tasks(call)[wait.task].stream == Stream::parameter_communication)
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
};

/// The rules after which hosts wait, as a stack file has them.
std::string rules_of_waits(const cost::Stack& stack) {
  std::string text;
  const auto add = [&](const std::string& rule) { text += (text.empty() ? "" : ", ") + rule; };
  for (const auto& [words, rule] : cost::host_waits_words()) {
    if (says(stack, rule)) add("\"host_waits\": \"" + words + "\"");
  }
  if (cost::rule_of<cost::ShardCollectives>(stack).gathers_wait)
    add("\"shard_collectives\" with gathers that are \"waited for\"");
  return text;
}

/// The same where no host waits.
program::Program without_waits(program::Program program) {
  for (program::Sequence& sequence : program.sequences) {
    for (StoredCall& call : sequence.calls.stored()) call.host_waits.clear();
  }
  for (program::Block& block : program.blocks) {
    for (Task& task : block.tasks) task.synchronizations = 0;
  }
  return program;
}

}  // namespace

void check_with_hosts(const program::Program& program, const cost::Stack& stack) {
  try {
    program::check(program);
  } catch (const InputError& error) {
    const std::string rules = rules_of_waits(stack);
    if (rules.empty()) throw;
    program::check(without_waits(program));
    throw InputError(error.file, error.path, error.expected + " where hosts wait (" + rules + ")",
                     error.found);
  }
}

void add_host_waits(program::Program& program, const cost::Stack& stack) {
  int last_stage = 0;
  for (const program::Sequence& sequence : program.sequences) {
    for (const StoredCall& call : sequence.calls.stored())
      last_stage = std::max(last_stage, call.cell.stage);
  }
  for (program::Sequence& sequence : program.sequences) {
    expects(sequence.calls.loops().empty(), "host waits come before loops");
    HostWaits(program, sequence, stack, last_stage).write();
  }
}

}  // namespace stratagem::lowering

// Goes through the launches of every sequence and finds those that begin a cell.
#include "lowering/stack/host_waits.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "cost/rule_kinds.hpp"
#include "program/check/check.hpp"

namespace stratagem::lowering {
namespace {

using placement::Cell;
using placement::CellPass;
using program::HostWait;
using program::StoredCall;
using program::Stream;
using program::Task;

/// As program::HostWait::of_task.
constexpr int all_streams = -1;
constexpr int computations = static_cast<int>(Stream::compute);

class HostWaits {
 public:
  HostWaits(const program::Program& program, program::Sequence& sequence, const cost::Stack& stack)
      : program_(program),
        sequence_(sequence),
        rules_(cost::rules_of<HostRule>(stack)),
        works_for_passes_(cost::rule_of<cost::PassWork>(stack).launches > 0),
        blocks_(program.blocks.size()),
        waits_for_exchanges_(
            exchanges() && (says(HostRule::each_exchange) ||
                            (says(HostRule::each_exchange_unless_interleaved) && has_one_stage()))),
        launched_(sequence.calls.size(), 0) {}

  void write() {
    wait_in_cells();
    for (StoredCall& call : sequence_.calls.stored()) {
      if (says(HostRule::each_launch)) call.host_waits.push_back({-1, -1, all_streams});
      for (const program::Wait& wait : call.waits) {
        if (tasks(call)[wait.task].stream == Stream::parameter_communication)
          call.host_waits.push_back({wait.task, wait.of_call, wait.of_task});
      }
      leave_out_covered(call.host_waits);
    }
  }

 private:
  using HostRule = cost::HostWaits;

  /// What all calls of a block have in common.
  struct OfBlock {
    bool known = false;
    int first_computation = -1;  ///< -1: none, or it gathers weights ahead of those that read them
    std::array<std::vector<program::Wait>, 2> within;  ///< see within()
  };

  [[nodiscard]] bool says(HostRule rule) const { return std::ranges::count(rules_, rule) > 0; }

  [[nodiscard]] const std::vector<Task>& tasks(const StoredCall& call) const {
    return program_.blocks[call.block].tasks;
  }
  [[nodiscard]] const Task& task_of(const auto& wait) const {
    return tasks(sequence_.calls.stored()[wait.of_call])[wait.of_task];
  }

  /// Does the stage exchange tensors with others?
  [[nodiscard]] bool exchanges() const {
    return std::ranges::any_of(sequence_.calls.stored(), [&](const StoredCall& call) {
      return std::ranges::any_of(tasks(call), &program::transfers, &Task::stream);
    });
  }

  [[nodiscard]] bool has_one_stage() const {
    std::set<int> stages;
    for (const StoredCall& call : sequence_.calls.stored()) {
      if (call.segment >= 0) stages.insert(call.cell.stage);
    }
    return stages.size() == 1;
  }

  /// Cells are looked at where they are launched, each once.
  void wait_in_cells() {
    for (std::size_t c = 0; c < sequence_.calls.size(); ++c) {
      for (const HostWait& one : received_by(c))
        received_[sequence_.calls.stored()[c].cell].push_back(one);
    }
    const std::vector<int> beside = program::first_beside(sequence_);
    std::set<Cell> begun, passes;
    program::each_launch(program_, sequence_, [&](const program::Launch& launch) {
      const auto launched = [&](int task) { return launch.first <= task && task < launch.end; };
      StoredCall& call = sequence_.calls.stored()[launch.call];
      const int task = call.segment < 0 ? -1 : of_block(call).first_computation;
      if (launched(task)) {
        if (received_.contains(call.cell)) wait_for_received(launch.call, task);
        if (begun.insert(call.cell).second) begin(call, task);
        if (passes.insert(sequence_.calls.stored()[beside[launch.call]].cell).second)
          begin_pass(call, task);
      }
      for (const HostWait& received : received_by(launch.call)) {
        if (launched(received.before)) wait_for_received(launch.call, received.before);
      }
      launched_[launch.call] = launch.end;
    });
  }

  /// What tasks of a call read of what other stages sent, as waits of the host before them. What is
  /// only sent on is not read.
  [[nodiscard]] std::vector<HostWait> received_by(std::size_t number) {
    const StoredCall& call = sequence_.calls.stored()[number];
    std::vector<HostWait> received;
    for (const program::Wait& wait : call.waits) {
      if (reads(tasks(call)[wait.task]) && receives_for(call.cell.pass, task_of(wait)))
        received.push_back({wait.task, wait.of_call, wait.of_task});
    }
    for (const program::Wait& wait : within(call))
      received.push_back({wait.task, static_cast<int>(number), wait.of_task});
    return received;
  }

  static bool reads(const Task& task) { return !program::transfers(task.stream); }

  /// The waits of a call's tasks for what other tasks of the call have received.
  [[nodiscard]] const std::vector<program::Wait>& within(const StoredCall& call) {
    static const std::vector<program::Wait> none;
    if (call.cell.pass == CellPass::weight) return none;
    return of_block(call).within[call.cell.pass == CellPass::forward ? 0 : 1];
  }

  /// Found when the first call of the block is looked at.
  OfBlock& of_block(const StoredCall& call) {
    OfBlock& block = blocks_[call.block];
    if (std::exchange(block.known, true)) return block;
    const std::vector<Task>& all = tasks(call);
    const auto find = [&](Stream stream) { return std::ranges::find(all, stream, &Task::stream); };
    const auto computation = find(Stream::compute);
    if (computation != all.end() && find(Stream::parameter_communication) == all.end())
      block.first_computation = static_cast<int>(computation - all.begin());
    constexpr std::array passes = {CellPass::forward, CellPass::backward};
    for (std::size_t t = 0; t < all.size(); ++t) {
      if (!reads(all[t])) continue;
      for (const int wait : all[t].waits) {
        for (std::size_t pass = 0; pass < passes.size(); ++pass) {
          if (receives_for(passes[pass], all[wait]))
            block.within[pass].push_back({static_cast<int>(t), -1, wait});
        }
      }
    }
    return block;
  }

  /// Sorts waits, and leaves out those that another one covers: an equal one, or before the same
  /// task one for all streams.
  static void leave_out_covered(std::vector<HostWait>& waits) {
    if (waits.size() < 2) return;
    std::ranges::sort(waits);  // all streams before single ones
    std::vector<HostWait> kept;
    for (const HostWait& wait : waits) {
      const bool streams = wait.of_call < 0;
      const bool covered =
          !kept.empty() && (kept.back() == wait ||
                            (streams && kept.back() == HostWait{wait.before, -1, all_streams}));
      if (!covered) kept.push_back(wait);
    }
    waits = std::move(kept);
  }

  /// Does a task receive what cells of a pass read? What a peer gives back does not come on the
  /// stream of that pass.
  static bool receives_for(CellPass pass, const Task& task) {
    switch (pass) {
      case CellPass::forward:
        return task.stream == Stream::receive_forward;
      case CellPass::backward:
        return task.stream == Stream::receive_backward;
      case CellPass::weight:
        return false;
    }
    return false;
  }

  /// Before a task of a cell, for what it has received by then, each once. That is before tensor
  /// ranks gather what they sent in shares, and before a backward cell computes again what it
  /// needs.
  void wait_for_received(int number, int task) {
    if (!waits_for_exchanges_ && !says(HostRule::each_received_pass)) return;
    StoredCall& call = sequence_.calls.stored()[number];
    std::vector<HostWait>& received = received_.at(call.cell);
    const auto there = std::partition(received.begin(), received.end(), [&](const HostWait& one) {
      return one.of_task >= (one.of_call == number ? task : launched_[one.of_call]);
    });
    if (there == received.end()) return;
    if (waited_.insert(call.cell).second)
      call.host_waits.push_back({task, -1, waits_for_exchanges_ ? all_streams : computations});
    for (auto one = there; one != received.end(); ++one)
      call.host_waits.push_back({task, one->of_call, one->of_task});
    received.erase(there, received.end());
  }

  /// A cell comes to its first computation.
  void begin(StoredCall& call, int task) const {
    const Cell& cell = call.cell;
    const bool first_of_micro_batch =
        cell.pass == CellPass::forward && cell.slice == 0 && cell.repeat == 0;
    if (first_of_micro_batch && says(HostRule::each_micro_batch)) wait(call, task, computations);
  }

  /// As `begin`, of cells that take turns the first one.
  void begin_pass(StoredCall& call, int task) const {
    if (works_for_passes_ && call.cell.pass != CellPass::weight) call.begins_pass = task;
    const bool sends_only = waits_for_exchanges_ && !received_.contains(call.cell);
    if (sends_only || says(HostRule::each_pass) || says(HostRule::each_launch))
      wait(call, task, all_streams);
  }

  /// For streams, and for what a call reads of messages that have been launched.
  void wait(StoredCall& call, int task, int streams) const {
    call.host_waits.push_back({task, -1, streams});
    for (const program::Wait& one : call.waits) {
      const bool message =
          std::ranges::any_of(tasks(sequence_.calls.stored()[one.of_call]),
                              [&](const Task& from) { return receives_for(call.cell.pass, from); });
      if (message && launched_[one.of_call] > one.of_task)
        call.host_waits.push_back({task, one.of_call, one.of_task});
    }
  }

  const program::Program& program_;
  program::Sequence& sequence_;
  std::vector<HostRule> rules_;
  bool works_for_passes_;
  std::vector<OfBlock> blocks_;  ///< by block
  bool waits_for_exchanges_;
  std::vector<int> launched_;  ///< by call: its tasks so far
  /// What cells read of what other devices sent and have not waited for.
  std::map<Cell, std::vector<HostWait>> received_;
  std::set<Cell> waited_;  ///< cells that have waited for any of it
};

/// Why hosts of a program wait: rules as a stack file has them, then what needs no rule.
std::string reasons_to_wait(const program::Program& program, const cost::Stack& stack) {
  std::string text;
  const auto add = [&](const std::string& reason) { text += (text.empty() ? "" : ", ") + reason; };
  for (const auto& [words, rule] : cost::host_waits_words()) {
    if (says(stack, rule)) add("\"host_waits\": \"" + words + "\"");
  }
  if (cost::rule_of<cost::ShardCollectives>(stack).gathers_wait)
    add("\"shard_collectives\" with gathers that are \"waited for\"");
  const auto gathers = [&](const StoredCall& call) {
    return std::ranges::any_of(call.host_waits, [&](const HostWait& wait) {
      return wait.of_call >= 0 && program.blocks[call.block].tasks[wait.before].stream ==
                                      Stream::parameter_communication;
    });
  };
  if (std::ranges::any_of(program.sequences, [&](const program::Sequence& sequence) {
        return std::ranges::any_of(sequence.calls.stored(), gathers);
      }))
    add("before gathers of weights ahead");
  if (std::ranges::any_of(program.blocks, [](const program::Block& block) {
        return std::ranges::any_of(
            block.tasks, [](int times) { return times > 0; }, &Task::synchronizations);
      }))
    add("for tasks that synchronize");
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
    const std::string reasons = reasons_to_wait(program, stack);
    if (reasons.empty()) throw;
    program::check(without_waits(program));
    throw InputError(error.file, error.path, error.expected + " where hosts wait (" + reasons + ")",
                     error.found);
  }
}

void add_host_waits(program::Program& program, const cost::Stack& stack) {
  for (program::Sequence& sequence : program.sequences) {
    expects(sequence.calls.loops().empty(), "host waits come before loops");
    HostWaits(program, sequence, stack).write();
  }
}

}  // namespace stratagem::lowering

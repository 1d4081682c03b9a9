// Looks at every block once, and at every call as it is stored: at a loop's body once for all turns.
#include "program/check/references.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "program/check/describe.hpp"

namespace stratagem::program {
namespace {

bool within(int index, std::size_t size) {
  return index >= 0 && static_cast<std::size_t>(index) < size;
}

void check_slots(const Block& block, const Task& task) {
  for (const auto* slots : {&task.reads, &task.writes, &task.allocates, &task.frees}) {
    for (const int slot : *slots) {
      if (!within(slot, block.slots.size()) || block.slots[slot].tensor < 0) {
        throw InputError(
            "", "", describe(block, task) + " to use buffers of its block that hold tensors",
            "slot " + std::to_string(slot) + " of " + std::to_string(block.slots.size()));
      }
    }
  }
}

void check_block(const Block& block) {
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    const Task& task = block.tasks[t];
    for (const int wait : task.waits) {
      if (!within(wait, t)) {
        throw InputError("", "", describe(block, task) + " to wait for earlier tasks of its block",
                         within(wait, block.tasks.size())
                             ? "a wait for " + describe(block, block.tasks[wait])
                             : "a wait for task " + std::to_string(wait) + ", which is missing");
      }
    }
    const auto* collective = std::get_if<Collective>(&task.work);
    if (collective == nullptr ? transfers(task.stream) : collective->group < 0) {
      throw InputError("", "", describe(block, task) + " to be the collective of a group", "none");
    }
    check_slots(block, task);
  }
}

void check_wait(const Program& program, const Sequence& sequence, int call, const Wait& wait) {
  const Calls& calls = sequence.calls;
  const std::vector<Task>& tasks = program.blocks[calls.body(call).block].tasks;
  const bool earlier = within(wait.of_call, static_cast<std::size_t>(call));
  if (within(wait.task, tasks.size()) && earlier &&
      within(wait.of_task, program.blocks[calls.body(wait.of_call).block].tasks.size()))
    return;
  const std::string of = "task " + std::to_string(wait.of_task) + " of call " +
                         std::to_string(wait.of_call) +
                         (within(wait.of_call, calls.size()) && !earlier ? ", which comes later"
                                                                         : ", which is missing");
  const std::string who =
      within(wait.task, tasks.size())
          ? describe(program, sequence, {.call = call, .task = wait.task})
          : "task " + std::to_string(wait.task) + " of call " + std::to_string(call);
  throw InputError("", "", who + " to wait for tasks of earlier calls", "a wait for " + of);
}

void check_host_wait(const Program& program, const Sequence& sequence, int call,
                     const HostWait& wait) {
  const Wait like{
      .task = std::max(wait.before, 0), .of_call = wait.of_call, .of_task = wait.of_task};
  if (wait.of_call >= 0) return check_wait(program, sequence, call, like);
  if (!within(wait.of_task + 1, stream_names.size() + 1) ||
      !within(like.task, program.blocks[sequence.calls.body(call).block].tasks.size()))
    throw InputError("", "", "a host to wait before a task for a stream", "another wait");
}

/// Calls `check` with a wait of a stored call in as many turns as wait for what is before their
/// loop, and one more: from there on a wait is for the same call of the body.
template <typename One, typename Check>
void each_wait(const Calls& calls, int stored, WaitsOf<One> Call::*waits, const Check& check) {
  const Loop* loop = calls.loop_of(stored);
  const int first = loop == nullptr ? 0 : calls.number({loop->first, 0});
  const int turns = loop == nullptr ? 1 : loop->turns;
  const std::size_t count = (calls[calls.number({stored, 0})].*waits).size();
  for (std::size_t w = 0; w < count; ++w) {
    for (int turn = 0; turn < turns; ++turn) {
      const int number = calls.number({stored, turn});
      const One wait = (calls[number].*waits)[w];
      check(number, wait);
      if (wait.of_call < 0 || wait.of_call >= first) break;
    }
  }
}

/// What lives during a part of an iteration does so between two tasks, in this order, and
/// iterations do not overlap.
void check_spans(const Program& program, const Sequence& sequence) {
  const auto known = [&](const TaskOfCall& of) {
    return within(of.call, sequence.calls.size()) &&
           within(of.task, program.blocks[sequence.calls.body(of.call).block].tasks.size());
  };
  for (const Resident& resident : sequence.residents) {
    if (!resident.span) continue;
    const auto& [first, last] = *resident.span;
    const bool in_order = std::pair(first.call, first.task) <= std::pair(last.call, last.task);
    if (known(first) && known(last) && in_order && program.lag == 0) continue;
    throw InputError("", "", "residents that live from one task of an iteration to a later one",
                     "call " + std::to_string(first.call) + " task " + std::to_string(first.task) +
                         " to call " + std::to_string(last.call) + " task " +
                         std::to_string(last.task));
  }
}

/// Every task is launched once, those of a call in order, each after what it waits for; the body of
/// a loop after all that is before it, and as a whole.
class LaunchCheck {
 public:
  LaunchCheck(const Program& program, const Calls& calls)
      : program_(program), calls_(calls), launched_(calls.stored().size(), 0) {}

  void add(const Launch& launch) {
    if (!within(launch.call, launched_.size())) refuse(launch.call, launch.first);
    const Loop* loop = calls_.loop_of(launch.call);
    if (loop != loop_) {
      if (loop_ != nullptr) expect_whole(loop_->first, loop_->first + loop_->calls);
      if (loop != nullptr) expect_whole(0, loop->first);
    }
    loop_ = loop;
    const bool next = launched_[launch.call] == launch.first && launch.first < launch.end;
    if (!next || launch.end > tasks(launch.call)) refuse(launch.call, launch.first);
    const StoredCall& call = calls_.stored()[launch.call];
    for (const Wait& wait : call.waits) expect_after(launch, wait.task, wait);
    for (const HostWait& wait : call.host_waits) expect_after(launch, wait.before, wait);
    launched_[launch.call] = launch.end;
  }
  void end() const { expect_whole(0, static_cast<int>(launched_.size())); }

 private:
  [[nodiscard]] int tasks(int stored) const {
    return static_cast<int>(program_.blocks[calls_.stored()[stored].block].tasks.size());
  }
  /// What of a launch waits so is launched after what it waits for, in a loop in the same turn.
  template <typename One>
  void expect_after(const Launch& launch, int task, const One& wait) const {
    const int first = loop_ == nullptr ? 0 : calls_.number({loop_->first, 0});
    const bool here = launch.first <= task && task < launch.end;
    if (here && wait.of_call >= first &&
        launched_[calls_.place(wait.of_call).stored] <= wait.of_task)
      refuse(launch.call, task);
  }
  void expect_whole(int first, int end) const {
    for (int call = first; call < end; ++call) {
      if (launched_[call] != tasks(call)) refuse(call, launched_[call]);
    }
  }
  [[noreturn]] static void refuse(int call, int task) {
    throw InputError("", "", "an order of launches with every task once, after what it waits for",
                     "otherwise call " + std::to_string(call) + " at task " + std::to_string(task));
  }

  const Program& program_;
  const Calls& calls_;
  std::vector<int> launched_;   ///< tasks, by stored call
  const Loop* loop_ = nullptr;  ///< of the last launch
};

void check_launches(const Program& program, const Sequence& sequence) {
  if (sequence.launches.empty()) return;
  LaunchCheck check(program, sequence.calls);
  for (const Launch& launch : sequence.launches) check.add(launch);
  check.end();
}

/// By block: the highest place in a table of tensors that its slots name.
std::vector<int> highest_places(const Program& program) {
  std::vector<int> highest;
  for (const Block& block : program.blocks) {
    highest.push_back(-1);
    for (const Slot& slot : block.slots) highest.back() = std::max(highest.back(), slot.tensor);
  }
  return highest;
}

}  // namespace

void check_references(const Program& program) {
  for (const Block& block : program.blocks) check_block(block);
  const std::vector<int> highest = highest_places(program);
  for (const Sequence& sequence : program.sequences) {
    const std::vector<StoredCall>& calls = sequence.calls.stored();
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const StoredCall& call = calls[c];
      const bool known =
          within(call.block, program.blocks.size()) && call.lag >= 0 && call.lag <= program.lag &&
          (call.segment < 0 ||
           (within(call.segment, program.segment_tensors.size()) &&
            highest[call.block] < static_cast<int>(program.segment_tensors[call.segment].size())));
      if (!known) {
        throw InputError("", "", "calls of blocks that bind all their buffers",
                         "call " + std::to_string(c) + " of block " + std::to_string(call.block));
      }
      const auto stored = static_cast<int>(c);
      each_wait(sequence.calls, stored, &Call::waits, [&](int number, const Wait& wait) {
        check_wait(program, sequence, number, wait);
      });
      if (!std::ranges::is_sorted(call.host_waits))
        throw InputError("", "", "waits of the host in order", "");
      each_wait(sequence.calls, stored, &Call::host_waits, [&](int number, const HostWait& wait) {
        check_host_wait(program, sequence, number, wait);
      });
    }
    check_launches(program, sequence);
    check_spans(program, sequence);
  }
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    if (!within(program.devices[d].sequence, program.sequences.size()))
      throw InputError("", "", "a sequence for device " + std::to_string(d), "none");
  }
}

}  // namespace stratagem::program

// Looks at every block once, then at every call and launch.
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
  const bool earlier = within(wait.of_call, static_cast<std::size_t>(call)) ||
                       (wait.of_call == call && wait.of_task < wait.task);
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
  throw InputError("", "", who + " to wait for earlier tasks", "a wait for " + of);
}

void check_waits(const Program& program, const Sequence& sequence, int number) {
  const Call call = sequence.calls[number];
  for (const Wait& wait : call.waits) check_wait(program, sequence, number, wait);
  if (call.begins_pass >= static_cast<int>(program.blocks[call.block].tasks.size()))
    throw InputError("", "", "a pass to begin before a task of the call", "another task");
  if (!std::ranges::is_sorted(call.host_waits))
    throw InputError("", "", "waits of the host in order", "");
  for (const HostWait& wait : call.host_waits) {
    const Wait like{
        .task = std::max(wait.before, 0), .of_call = wait.of_call, .of_task = wait.of_task};
    if (wait.of_call >= 0) {
      check_wait(program, sequence, number, like);
    } else if (!within(wait.of_task + 1, stream_names.size() + 1) ||
               !within(like.task, program.blocks[call.block].tasks.size())) {
      throw InputError("", "", "a host to wait before a task for a stream", "another wait");
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
    if (!resident.span) {
      if (!resident.until_next) continue;
      throw InputError("", "",
                       "a task with which a resident begins that lives until the next iteration",
                       "one that begins with no task");
    }
    const auto& [first, last] = *resident.span;
    const bool in_order = std::pair(first.call, first.task) <= std::pair(last.call, last.task);
    if (known(first) && known(last) && in_order && program.lag == 0) continue;
    throw InputError("", "", "residents that live from one task of an iteration to a later one",
                     "call " + std::to_string(first.call) + " task " + std::to_string(first.task) +
                         " to call " + std::to_string(last.call) + " task " +
                         std::to_string(last.task));
  }
}

/// Every task is launched once, those of a call in order, each after what it waits for.
void check_launches(const Program& program, const Sequence& sequence) {
  if (sequence.launches.empty()) return;
  std::vector<int> launched(sequence.calls.size(), 0);
  const auto refuse = [](int call, int task) {
    throw InputError("", "", "an order of launches with every task once, after what it waits for",
                     "otherwise call " + std::to_string(call) + " at task " + std::to_string(task));
  };
  each_launch(program, sequence, [&](const Launch& launch) {
    if (!within(launch.call, launched.size())) refuse(launch.call, launch.first);
    const Call call = sequence.calls[launch.call];
    const auto tasks = static_cast<int>(program.blocks[call.block].tasks.size());
    const bool next = launched[launch.call] == launch.first && launch.first < launch.end;
    if (!next || launch.end > tasks) refuse(launch.call, launch.first);
    const auto check_after = [&](int task, const auto& wait) {
      const bool here = launch.first <= task && task < launch.end;
      if (!here || wait.of_call < 0) return;
      const int before = wait.of_call == launch.call ? task : launched[wait.of_call];
      if (before <= wait.of_task) refuse(launch.call, task);
    };
    for (const Wait& wait : call.waits) check_after(wait.task, wait);
    for (const HostWait& wait : call.host_waits) check_after(wait.before, wait);
    launched[launch.call] = launch.end;
  });
  for (std::size_t c = 0; c < launched.size(); ++c) {
    const std::size_t tasks = program.blocks[sequence.calls.body(c).block].tasks.size();
    if (launched[c] != static_cast<int>(tasks)) refuse(static_cast<int>(c), launched[c]);
  }
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
                         "call " + std::to_string(sequence.calls.number({static_cast<int>(c), 0})) +
                             " of block " + std::to_string(call.block));
      }
    }
    for (std::size_t c = 0; c < sequence.calls.size(); ++c)
      check_waits(program, sequence, static_cast<int>(c));
    check_launches(program, sequence);
    check_spans(program, sequence);
  }
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    if (!within(program.devices[d].sequence, program.sequences.size()))
      throw InputError("", "", "a sequence for device " + std::to_string(d), "none");
  }
}

}  // namespace stratagem::program

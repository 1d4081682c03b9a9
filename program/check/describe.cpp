// Names of tasks in messages.
#include "program/check/describe.hpp"

namespace stratagem::program {

std::string describe(const Block& block, const Task& task) {
  if (block.name.empty() || block.name == task.name) return task.name;
  return task.name + " of " + block.name;
}

std::string describe(const Program& program, const Sequence& sequence, const TaskOfCall& place) {
  const Call call = sequence.calls[place.call];
  return describe(program.blocks[call.block], task_at(program, sequence, place)) + " in " +
         to_text(call.cell);
}

const Task& task_at(const Program& program, const Sequence& sequence, const TaskOfCall& place) {
  return program.blocks[sequence.calls.body(place.call).block].tasks[place.task];
}

}  // namespace stratagem::program

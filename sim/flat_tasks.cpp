// Stores the tasks of stored calls, then goes through the launches.
#include "sim/flat_tasks.hpp"

namespace stratagem::sim {

FlatTasks::FlatTasks(const program::Program& program, const program::Sequence& sequence) {
  store(program, sequence.calls);
  places_.reserve(program::task_count(program, sequence));
  const std::vector<int> first = program::first_beside(sequence);
  program::each_launch(program, sequence, [&](const program::Launch& launch) {
    Bound& bound = calls_[launch.call];
    Bound& beside = calls_[first[launch.call]];
    if (beside.number < 0) beside.number = static_cast<int>(size());
    bound.number = beside.number;
    for (int task = launch.first; task < launch.end; ++task) {
      const int stored = bound.stored + task;
      after_[stored] = static_cast<int>(size()) - bound.number;  // in every turn the same
      places_.push_back({launch.call, stored});
    }
  });
}

void FlatTasks::store(const program::Program& program, const program::Calls& calls) {
  std::vector<int> first;  // by stored call
  for (std::size_t c = 0; c < calls.stored().size(); ++c) {
    const int block = calls.stored()[c].block;
    const int number = calls.number({static_cast<int>(c), 0});
    first.push_back(static_cast<int>(stored_.size()));
    for (const program::Task& task : program.blocks[block].tasks) {
      const int t = static_cast<int>(stored_.size()) - first.back();
      stored_.push_back({number, block, t, task.stream});
    }
  }
  after_.resize(stored_.size());
  calls_.reserve(calls.size());
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const program::Calls::Place place = calls.place(c);
    calls_.push_back({.stored = first[place.stored], .turn = place.turn});
  }
}

}  // namespace stratagem::sim

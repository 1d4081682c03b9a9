// A sequence as steps (calls or tasks), with the order of the steps in a round.
#pragma once

#include <utility>
#include <vector>

#include "program/check/describe.hpp"
#include "program/program.hpp"

namespace stratagem::program {

enum class Grain : std::uint8_t { calls, tasks };

/// Steps by number; pairs are {before, after}.
struct Steps {
  /// Of steps; of a call, its first task. Calls whose launches alternate are one step. Where tasks
  /// are steps, waits of the host are, too: behind all tasks, each at the task before which it is.
  std::vector<TaskOfCall> places;
  std::vector<int> first;                   ///< by call: its first step, or the one that it is in
  std::vector<std::pair<int, int>> queued;  ///< next to each other in a queue
  /// The last of a queue in a round, its first in the next.
  std::vector<std::pair<int, int>> wrapped;
  std::vector<std::pair<int, int>> waits;
};

/// Numbers the queues. There is a queue for each stream, except for transfers, and for each group:
/// collectives of a group run in order even on different streams, as NCCL runs them.
class Queues {
 public:
  /// Devices know `groups` groups.
  Queues(const Program& program, int groups);
  [[nodiscard]] int count() const;
  [[nodiscard]] const std::vector<int>& of_task(int block, int task) const {
    return of_task_[block][task];
  }
  /// The queues of the tasks of a block, each once.
  [[nodiscard]] const std::vector<int>& of_block(int block) const { return of_block_[block]; }
  /// Does the host wait for a task of a block?
  [[nodiscard]] bool synchronises(int block) const { return synchronises_[block]; }

 private:
  [[nodiscard]] std::vector<int> of(const Task& task) const;

  int groups_;
  std::vector<std::vector<std::vector<int>>> of_task_;  ///< by block
  std::vector<std::vector<int>> of_block_;
  std::vector<bool> synchronises_;  ///< by block
};

/// The steps of a sequence. Calls without tasks are steps too. The host is one more queue: it takes
/// its waits one after another, each behind what it waits for, and before all that is launched
/// later. A call in which it waits is a step of this queue as a whole.
Steps steps_of(const Program& program, const Sequence& sequence, Grain grain, const Queues& queues);

}  // namespace stratagem::program

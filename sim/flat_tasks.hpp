// The tasks of a sequence in the order of their launches.
#pragma once

#include <vector>

#include "program/program.hpp"

namespace stratagem::sim {

struct FlatTask {
  int call = 0;
  int block = 0;
  int task = 0;
  program::Stream stream = program::Stream::compute;
  int queue = 0;  ///< index into Timeline::queues of the sequence
};

/// The tasks of one round by number. What is the same in all turns of a loop is stored once.
class FlatTasks {
 public:
  FlatTasks() = default;
  FlatTasks(const program::Program& program, const program::Sequence& sequence);

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  [[nodiscard]] FlatTask operator[](std::size_t number) const {
    FlatTask task = body(number);
    task.call = places_[number].call;
    return task;
  }
  [[nodiscard]] program::Numbered<FlatTasks, FlatTask> begin() const { return {*this, 0}; }
  [[nodiscard]] program::Numbered<FlatTasks, FlatTask> end() const { return {*this, size()}; }

  /// In the order of calls as they are stored; `call` is that of the first turn.
  [[nodiscard]] const std::vector<FlatTask>& stored() const { return stored_; }
  [[nodiscard]] std::vector<FlatTask>& stored() { return stored_; }
  /// Which of the stored tasks one is: all but its call.
  [[nodiscard]] int place(std::size_t number) const { return places_[number].stored; }
  [[nodiscard]] const FlatTask& body(std::size_t number) const { return stored_[place(number)]; }

  [[nodiscard]] int call(std::size_t number) const { return places_[number].call; }
  [[nodiscard]] int turn(std::size_t number) const { return calls_[call(number)].turn; }
  [[nodiscard]] int number(int call, int task) const {
    const Bound& bound = calls_[call];
    return bound.number + after_[bound.stored + task];
  }

 private:
  struct Place {
    int call = 0;
    int stored = 0;
  };
  struct Bound {
    int stored = 0;  ///< its first task
    int turn = 0;
    int number = -1;  ///< of the first task of it and the calls beside it
  };

  void store(const program::Program& program, const program::Calls& calls);

  std::vector<FlatTask> stored_;
  std::vector<int> after_;  ///< by stored task: tasks launched since that number
  std::vector<Bound> calls_;
  std::vector<Place> places_;
};

}  // namespace stratagem::sim

// Writes the tasks of a block anew, some of them as several.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "program/program.hpp"

namespace stratagem::lowering {

/// Where the tasks of a block are now, by where they were: one that was cut is several.
struct Moved {
  std::vector<int> first;
  std::vector<int> last;
  /// Computations on the own share of what is gathered by their new place, and its slot, which the
  /// gather alone read.
  std::vector<std::pair<int, int>> own_shares;
};

inline bool is_in(const std::vector<int>& list, int value) {
  return std::ranges::find(list, value) != list.end();
}

/// Ascending, each number once.
inline void sort_once(std::vector<int>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// Who launches a further piece of a kernel: the library that cuts it, within the same call.
inline cost::LaunchedBy within_call(cost::LaunchedBy whole) {
  const bool in_graph = whole == cost::LaunchedBy::graph || whole == cost::LaunchedBy::replay;
  return in_graph ? cost::LaunchedBy::replay : cost::LaunchedBy::library;
}

/// The new tasks of a block, in order, and where the old ones have gone.
class Rewriting {
 public:
  explicit Rewriting(program::Block& block)
      : block_(block),
        moved_{std::vector<int>(block.tasks.size(), -1),
               std::vector<int>(block.tasks.size(), -1),
               {}} {}

  [[nodiscard]] program::Block& block() { return block_; }
  [[nodiscard]] const program::Block& block() const { return block_; }
  [[nodiscard]] int count() const { return static_cast<int>(block_.tasks.size()); }
  [[nodiscard]] const program::Task& old(int task) const { return block_.tasks[task]; }
  [[nodiscard]] const cost::Kernel& kernel_of(int task) const {
    return std::get<cost::Kernel>(old(task).work);
  }

  int add(program::Task task) {
    tasks_.push_back(std::move(task));
    return static_cast<int>(tasks_.size()) - 1;
  }
  /// Adds an old task, or a piece of it.
  int add(program::Task task, int of) {
    const int number = add(std::move(task));
    stands_for(number, of);
    return number;
  }
  void stands_for(int number, int of) {
    if (moved_.first[of] < 0) moved_.first[of] = number;
    moved_.last[of] = number;
  }
  /// Adds an old task as it is, after what it waited for.
  void keep(int task) {
    program::Task same = old(task);
    same.waits = moved(same.waits);
    if (same.stream == program::Stream::compute) drop_computation(same.waits);
    add(std::move(same), task);
  }
  [[nodiscard]] program::Task& newest() { return tasks_.back(); }
  void computes_own_share(int number, int slot) { moved_.own_shares.emplace_back(number, slot); }

  /// Where tasks stand now that were waited for.
  [[nodiscard]] std::vector<int> moved(std::vector<int> waits) const {
    for (int& wait : waits) wait = moved_.last[wait];
    sort_once(waits);
    return waits;
  }
  /// Computations follow each other anyway.
  void drop_computation(std::vector<int>& waits) const {
    std::erase_if(waits, [&](int task) { return tasks_[task].stream == program::Stream::compute; });
  }
  /// The last old task before `end` that writes a slot, if it is no computation; else -1.
  [[nodiscard]] int writer_of(int slot, int end) const {
    for (int t = end - 1; t >= 0; --t) {
      if (is_in(old(t).writes, slot)) return old(t).stream == program::Stream::compute ? -1 : t;
    }
    return -1;
  }

  Moved finish() {
    block_.tasks = std::move(tasks_);
    return std::move(moved_);
  }

 private:
  program::Block& block_;
  std::vector<program::Task> tasks_;
  Moved moved_;
};

}  // namespace stratagem::lowering

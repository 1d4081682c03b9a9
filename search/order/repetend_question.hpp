// Whether cells can repeat with a period, as a question to Z3.
#pragma once

#include <memory>
#include <vector>

#include "search/order/repeating.hpp"

namespace stratagem::search {

/// Schedules of one period. Of what devices hold it knows at first only the limits of those that
/// hold one thing; `limit` adds others, which make it slower.
class Question {
 public:
  /// `problem` must outlive it; `effort` as in RepetendOptions.
  Question(const Repeating& problem, int period, unsigned effort);
  ~Question();
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  enum class Reply { yes, no, gave_up };
  /// Is there a schedule whose latency is at most so long?
  Reply ask(int latency);
  /// That of the last `yes`.
  [[nodiscard]] const std::vector<int>& begins() const;
  /// From now on this device holds at no time more than its limit.
  void limit(int device);

 private:
  class Solver;
  std::unique_ptr<Solver> solver_;
};

}  // namespace stratagem::search

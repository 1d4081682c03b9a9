// The shortest timetable of several attempts at list scheduling.
#pragma once

#include <optional>

#include "strategies/schedules/timetable/list_scheduler.hpp"

namespace stratagem::strategies {

/// No list rule is the best one for all numbers and costs, so schedules try a few and keep the
/// shortest; of equally short ones, that with the smallest bubble, then the first.
class Shortest {
 public:
  /// Lists the cells by their costs, and once more as if all took equally long, an order that is
  /// then kept under the true costs. Greed for the next free moment does harm where durations
  /// differ; the even order is the pattern that papers draw.
  void attempt(const Workload& workload, const Priority& priority);

  /// Some attempt must have found one.
  [[nodiscard]] Timetable take();

 private:
  void offer(std::optional<Listed> found);

  std::optional<Listed> best_;
};

}  // namespace stratagem::strategies

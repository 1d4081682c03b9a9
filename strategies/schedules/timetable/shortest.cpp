// Attempts at list scheduling, by true and by even costs.
#include "strategies/schedules/timetable/shortest.hpp"

#include <tuple>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::strategies {

void Shortest::attempt(const Workload& workload, const Priority& priority) {
  offer(list_schedule(workload, priority));
  Workload even = workload;
  even.pipeline.costs = {1, 1, workload.split ? 1 : 0};
  auto listed = list_schedule(even, priority);
  if (!listed) return;
  even.pipeline.costs = workload.pipeline.costs;
  even.kept_order = std::move(listed->timetable.ranks);
  offer(list_schedule(even, priority));
}

Timetable Shortest::take() {
  expects(best_.has_value(), "one of the attempts at list scheduling ends");
  return std::move(best_->timetable);
}

void Shortest::offer(std::optional<Listed> found) {
  if (!found) return;
  if (best_ && std::tie(best_->makespan, best_->bubble) <= std::tie(found->makespan, found->bubble))
    return;
  best_ = std::move(found);
}

}  // namespace stratagem::strategies

// Applies a schedule to a plan: its op-orders, or its timetable as op-orders.
#include <algorithm>
#include <map>
#include <string>

#include "base/input_error.hpp"
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/timetable/cell_times.hpp"

namespace stratagem::strategies {
namespace {

/// op-order of each rank's cells, one after the other. Where a W cell stands, the backward cell of
/// its stage and micro-batch is split.
void order(Plan& plan, const Timetable& timetable) {
  for (const std::vector<placement::Cell>& cells : timetable.ranks) {
    for (const placement::Cell& cell : cells) {
      if (cell.pass == placement::CellPass::weight)
        plan.split_backward(cell.stage, cell.micro_batch);
    }
    plan.chain(cells);
  }
  for (const auto& [first, second] : timetable.together) plan.run_together(first, second);
}

/// What a schedule of a few op-orders leaves, as a timetable.
Timetable timetable_of(const Schedule& schedule, const Plan& plan, const Pipeline& pipeline) {
  Plan between(plan.graph());
  between.micro_batches = plan.micro_batches;
  between.stages.resize(pipeline.stages(schedule.placement));
  std::get<Schedule::Rules>(schedule.orders)(between);
  if (schedule.forward_passes > 1 || !between.updates.flush || !between.residency.rules().empty()) {
    throw InputError("", "",
                     "a schedule with a flush, one forward pass and no evictions where ends stand "
                     "apart or ranks share devices",
                     schedule.name);
  }
  return timetable_of(between.orders().rules, schedule.placement, pipeline);
}

/// The timetable of devices that take `per_device` consecutive ranks each: their cells one after
/// another in the order in which the ranks alone would begin them at `pipeline.costs`. One order
/// of time for all devices, so that no device waits for itself. Throws InputError for timetables
/// whose cells run together. Expects that the ranks divide.
Timetable on_shared_devices(const Timetable& timetable, int stages, const Pipeline& pipeline,
                            int per_device) {
  if (!timetable.together.empty())
    throw InputError("", "", "a schedule that runs no cells together for ranks that share a device",
                     "");
  const std::map<placement::Cell, Span> times = cell_times(stages, timetable, pipeline.costs);
  Timetable result;
  result.ranks.resize(timetable.ranks.size() / per_device);
  for (std::size_t rank = 0; rank < timetable.ranks.size(); ++rank) {
    std::vector<placement::Cell>& device = result.ranks[rank / per_device];
    device.insert(device.end(), timetable.ranks[rank].begin(), timetable.ranks[rank].end());
  }
  for (std::vector<placement::Cell>& device : result.ranks)
    std::ranges::stable_sort(device, {},
                             [&](const placement::Cell& cell) { return times.at(cell).begin; });
  return result;
}

}  // namespace

void apply(const Schedule& schedule, Plan& plan, const Pipeline& pipeline, const Ends& ends,
           int ranks_per_device) {
  const int repeats = plan.graph().forward_repeats;
  if (repeats != schedule.forward_passes) {
    throw InputError("", "",
                     "a schedule for a model whose forward pass runs " + std::to_string(repeats) +
                         (repeats == 1 ? " time" : " times"),
                     schedule.name);
  }
  const bool apart = ends.any() && !schedule.spreads_ends;
  const auto* rules = std::get_if<Schedule::Rules>(&schedule.orders);
  if (rules != nullptr && !apart && ranks_per_device == 1) return (*rules)(plan);
  if (plan.slices() > 1) {
    throw InputError("", "",
                     "gpipe or 1f1b, ends in their stages and a rank a device for token slices",
                     schedule.name);
  }
  Timetable timetable = rules != nullptr
                            ? timetable_of(schedule, plan, pipeline)
                            : std::get<Schedule::TimetableOf>(schedule.orders)(pipeline);
  if (ranks_per_device > 1) {
    if (ends.any())
      throw InputError("", "", "ends in the first and last stage where ranks share devices", "");
    timetable = on_shared_devices(timetable, pipeline.stages(schedule.placement), pipeline,
                                  ranks_per_device);
  }
  if (apart && !timetable.together.empty()) {
    throw InputError("", "", "a schedule that runs no cells together where ends stand apart",
                     schedule.name);
  }
  order(plan, apart ? with_ends(timetable, schedule.placement, pipeline, ends) : timetable);
}

}  // namespace stratagem::strategies

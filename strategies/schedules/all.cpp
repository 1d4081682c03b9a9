// The table of schedules, and how a timetable becomes op-orders.
#include "strategies/schedules/all.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "strategies/schedules/interlaced.hpp"
#include "strategies/schedules/rules.hpp"
#include "strategies/schedules/timetable/shared_ranks.hpp"
#include "strategies/schedules/timetables.hpp"

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

}  // namespace

const std::vector<Schedule>& schedules() {
  using P = Placement;
  // name, summary, where the stages stand, how many on a rank (0: the user says), what orders them,
  // and, where they are not false, 1 and false: spreads the ends, forward passes, takes turns
  static const std::vector<Schedule> table = {
      {"gpipe", "all forward cells, then all backward cells", P::loop, 1, &gpipe},
      {"1f1b",
       "one forward, one backward after a warm-up: at most as many micro-batches in flight as "
       "stages left",
       P::loop, 1, &one_f_one_b, false, 1, true},
      {"interleaved",
       "1F1B with several stages (chunks) on every rank: a bubble as many times smaller", P::loop,
       0, &timetables::interleaved},
      {"zb-h1", "backward cells split in B and W: a third of 1F1B's bubble at its memory", P::loop,
       1, &timetables::zb_h1},
      {"zb-h2", "as zb-h1 without a bubble between iterations, at twice 1F1B's memory", P::loop, 1,
       &timetables::zb_h2},
      {"zb-v", "two chunks a rank in V order, B and W split: no bubble at 1F1B's memory", P::wave,
       2, &timetables::zb_v},
      {"v-half", "as zb-v at half of 1F1B's memory, with a small bubble", P::wave, 2,
       &timetables::v_half},
      {"v-min", "as zb-v at a third of 1F1B's memory", P::wave, 2, &timetables::v_min},
      {"chimera", "two copies of the model, one from either end of the pipeline", P::bidirectional,
       1, &timetables::chimera},
      {"dualpipe", "as chimera, with B and W split and forward beside backward cells",
       P::bidirectional, 1, &timetables::dualpipe},
      {"dualpipe-v", "dualpipe folded into a V: two chunks a rank, one copy", P::wave, 2,
       &timetables::dualpipe_v},
      {"hanayo", "waves: an even number of chunks a rank, forth and back", P::wave, 0,
       &timetables::hanayo},
      {"interlaced",
       "embeddings and head on all ranks, which take turns with the stages: no bubble at one and "
       "a half times 1F1B's memory",
       P::loop, 1, &interlaced, true},
      {"bpipe",
       "1F1B whose early stages lend activations to the late ones: about half as many in flight",
       P::loop, 1, &bpipe},
      {"pipedream", "1F1B without a flush: stages read the newest weights, old ones are kept",
       P::loop, 1, &pipedream, false, 1, true},
      {"pipedream-vertical", "pipedream, all stages read the version that the first one read",
       P::loop, 1, &pipedream_vertical, false, 1, true},
      {"pipedream-2bw", "1F1B without a flush on the weights of the iteration before: two versions",
       P::loop, 1, &pipedream_2bw, false, 1, true},
      {"3f1b", "three forward passes and one backward pass of each micro-batch, interleaved",
       P::loop, 1, &three_f_one_b, false, 3},
  };
  return table;
}

std::string schedules_that(const std::function<bool(const Schedule&)>& are_so) {
  std::string names;
  for (const Schedule& one : schedules()) {
    if (are_so(one)) names += (names.empty() ? "" : ", ") + one.name;
  }
  return names;
}

const Schedule& schedule_named(const std::string& name) {
  const auto found = std::ranges::find(schedules(), name, &Schedule::name);
  expects(found != schedules().end(), "a schedule is one of the table");
  return *found;
}

namespace {

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
  return timetable_of(between.rules(), schedule.placement, pipeline);
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
    throw InputError("", "", "a schedule without paired cells where ends stand apart",
                     schedule.name);
  }
  order(plan, apart ? with_ends(timetable, schedule.placement, pipeline, ends) : timetable);
}

}  // namespace stratagem::strategies

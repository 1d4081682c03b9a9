// Orders the cells of all stages by the schedule that the options name.
#include <algorithm>
#include <iterator>

#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

void order_cells(Plan& plan, const Options& options) {
  const Schedule& schedule = schedule_named(options.schedule);
  apply(schedule, plan,
        {.ranks = options.pipeline,
         .chunks = options.chunks_of(schedule),
         .micro_batches = plan.micro_batches},
        options.ends(schedule), options.stages.ranks_per_device);
}

void check_chunks(Options& options, const JsonReader& strategy) {
  const Schedule& schedule = schedule_named(options.schedule);
  const int chunks = options.stages.chunks;
  if (chunks > 0 && chunks != options.chunks_of(schedule)) {
    strategy.at("chunks").fail(
        std::to_string(schedule.chunks) + " with the schedule " + schedule.name +
        "; several with " +
        schedules_that([](const Schedule& one) { return one.chunks == any_chunks; }));
  }
}

std::vector<std::string> names_of_schedules() {
  std::vector<std::string> names;
  std::ranges::transform(schedules(), std::back_inserter(names), &Schedule::name);
  return names;
}

}  // namespace

Strategy schedule() {
  using Named = Option<Options>;
  return {{Named{"schedule", &Options::schedule, words(names_of_schedules()),
                 "the order of the cells of all stages, and which stages a rank has"}
               .worth({"1f1b", "interleaved", "zb-h1"},
                      [](const Options& o) { return o.pipeline_ranks() > 1; }),
           {"chunks", within(&Options::stages, &StageOptions::chunks), whole(1, 1'000),
            "stages on every pipeline rank, with " +
                schedules_that([](const Schedule& one) { return one.chunks == any_chunks; }),
            "2"}},
          &order_cells,
          &check_chunks};
}

}  // namespace stratagem::strategies

// Bounds hold for plans of every kind that is shipped.
#include "study/bounds.hpp"

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/catch.hpp"

namespace stratagem::study {

TEST_CASE("no run of the small copies of all plans and models takes less than its bounds") {
  int checked = 0;
  for (const std::string file : {"tests/same/plans.json", "tests/same/models.json",
                                 "scenarios/zero.json", "scenarios/pipeline_schedules.json"}) {
    for (const Run& run : read_scenario(file).runs) {
      INFO(file << ", " << run.name);
      const Outcome outcome = simulate_or_refuse(run, {}).outcome;
      if (outcome.status == Outcome::Status::refused) continue;
      const Bounds least = bounds(run);
      CHECK(least.iteration_time <= outcome.metrics->iteration_time);
      CHECK(least.memory <= outcome.memory.used);
      ++checked;
    }
  }
  CHECK(checked > 100);
}

}  // namespace stratagem::study

// The flagship's runs of up to 64 GPUs, one device per class against every device.
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/catch.hpp"

using namespace stratagem;

TEST_CASE("folded and unfolded runs of the flagship scenario agree to the picosecond") {
  const study::Scenario scenario = study::read_scenario("scenarios/megatron_gpt2_dgx2h.json");
  int compared = 0;
  for (const study::Run& run : scenario.runs) {
    if (run.gpus > 64) continue;
    INFO(run.name);
    const study::Simulated folded =
        study::simulate(run, {.folded = true, .repeats = sim::Repeats::simulated});
    const study::Simulated unfolded =
        study::simulate(run, {.folded = false, .repeats = sim::Repeats::simulated});
    CHECK(unfolded.timeline.actors.size() == static_cast<std::size_t>(run.gpus));
    CHECK(folded.timeline.iteration_ends == unfolded.timeline.iteration_ends);
    for (std::size_t a = 0; a < folded.timeline.actors.size(); ++a) {
      const int device = folded.timeline.actors[a].device;
      CHECK(folded.timeline.times[a].begins == unfolded.timeline.times[device].begins);
      CHECK(folded.timeline.times[a].ends == unfolded.timeline.times[device].ends);
    }
    CHECK(folded.outcome.metrics->peak.total == unfolded.outcome.metrics->peak.total);
    ++compared;
  }
  CHECK(compared >= 12);  // all but the six on 128 GPUs and more
}

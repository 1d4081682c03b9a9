// Collectives as NCCL does them, played by the engine: the way depends on the payload.
#include <algorithm>

#include "sim/engine.hpp"
#include "sim/steady.hpp"
#include "tests/catch.hpp"
#include "tests/sim/hand_built.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {
namespace {

cost::CollectiveConstants constants_of(std::string_view preset) {
  const bool ampere = preset == "dgx-a100";
  const std::string profile = ampere ? "a100-sxm4-80gb" : "v100-sxm3-450w";
  return cost::read_profile("scenarios/profiles/" + profile + ".json").collective;
}

}  // namespace

TEST_CASE("each payload takes the way that NCCL chooses for it, to the picosecond") {
  for (const char* preset : {"dgx-2h", "dgx-1v", "dgx-a100"}) {
    const topology::Cluster machine = cluster(preset, 2);
    const cost::CollectiveConstants constants = constants_of(preset);
    cost::Collectives collectives(machine, constants, "2.12.12");
    std::vector<int> ranks = {0, 1, 2, 3};
    for (const bool several : {false, true}) {
      if (several) ranks.push_back(machine.gpus_per_node());
      HandBuilt built;
      const std::vector<Bytes> payloads = {10_KB, 2_MB, 100_MB};
      built.add_sequence({collective(payloads[0], {}, Stream::communication, 0),
                          collective(payloads[1], {}, Stream::communication, 0),
                          collective(payloads[2], {}, Stream::communication, 0)});
      built.add_sequence({});
      for (int device = 0; device < machine.gpus(); ++device) {
        const bool member = std::ranges::count(ranks, device) > 0;
        built.add_device(member ? 0 : 1, {member ? 0 : -1});
      }
      for (const bool folded : {true, false}) {
        const Timeline timeline =
            run(built.program, fold(built.program, collectives, folded), built.prices, 1);
        for (std::size_t i = 0; i < payloads.size(); ++i) {
          INFO(preset << ", " << ranks.size() << " ranks, " << payloads[i] / 1_MB << " MB");
          const auto route = collectives.route(CollectiveKind::all_reduce, ranks, payloads[i]);
          const Ticks alone = to_ticks(route.latency + payloads[i] / route.limit);
          const auto took = ends(timeline, 0, 0)[i] - (i == 0 ? 0 : ends(timeline, 0, 0)[i - 1]);
          CHECK(std::abs(took - alone.count) <= 1);
        }
      }
    }
  }
}

TEST_CASE("with NCCL's channels, too, folded and unfolded runs agree to the picosecond") {
  struct Plan {
    const char* preset;
    int nodes;
    strategies::Options options;
  };
  const std::vector<Plan> plans = {
      {"dgx-1v", 1, {.tensor = 2, .pipeline = 2, .data = 2, .schedule = "1f1b"}},
      {"dgx-1v", 2, {.tensor = 4, .data = 4, .gradients = {.overlap = true, .bucket = 50_KB}}},
      {"dgx-2h", 4, {.tensor = 8, .data = 8, .gradients = {.overlap = true, .bucket = 50_KB}}},
      {"dgx-a100", 2, {.tensor = 2, .pipeline = 2, .data = 4, .schedule = "gpipe"}},
  };
  for (const Plan& plan : plans) {
    INFO(plan.preset << " x " << plan.nodes);
    const program::Program program = lowered_gpt(4, 2, plan.options);
    const topology::Cluster machine = cluster(plan.preset, plan.nodes);
    const cost::CollectiveConstants constants = constants_of(plan.preset);
    cost::Collectives collectives(machine, constants, "2.18.6");
    const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
    const Prices prices = price(program, profile, {.slowdown = {1}, .host_factor = {1}});
    const Timeline one = run_until_steady(program, fold(program, collectives, true), prices);
    const Timeline all = run_until_steady(program, fold(program, collectives, false), prices);
    CHECK(one.iteration_ends == all.iteration_ends);
    CHECK(one.actors.size() <= all.actors.size());
  }
}

}  // namespace stratagem::sim

// Copies to the host beside computations: when layers wait for them, and what shares PCIe.
#include <numeric>

#include "tests/catch.hpp"
#include "tests/sim/hand_built.hpp"
#include "tests/sim/unit_chain.hpp"
#include "tests/sim/with_host.hpp"

namespace stratagem::sim {
namespace {

/// A chain of layers, all swapped, each of which takes `forward` units forward and none backward,
/// and whose input, the only thing that it keeps, takes `copy` units over PCIe.
struct Swapped {
  Swapped(int layers, int prefetch, int forward, double copy, int ranks = 1, bool shared = false)
      : program(UnitPipeline::lowered("{\"data\": " + std::to_string(ranks) +
                                          ", \"swap\": {\"layers\": " + std::to_string(layers) +
                                          ", \"prefetch\": " + std::to_string(prefetch) + "}}",
                                      chain(layers), 1)) {
    const Bytes kept = (1.0 / ranks) * 128_B;  // 4 x 2 x 8 numbers of two bytes
    const BytesPerSecond pcie = kept / Seconds{copy * 1e-12 * static_cast<double>(unit)};
    const Folding folding = fold(program, with_host(ranks, pcie, shared), ideal_network(), false);
    timeline = run(program, folding, unit_prices(program, {.forward = forward, .input = 0}), 2);
  }

  /// Units until the last forward pass has ended, and until the iteration has.
  [[nodiscard]] double forward_pass() const {
    const FlatTasks& tasks = timeline.tasks[0];
    Instant end{0};
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const program::Task& task = program.blocks[tasks[i].block].tasks[tasks[i].task];
      if (task.name == "product") end = std::max(end, timeline.times[0].ends[0][i]);
    }
    return static_cast<double>(end.picoseconds) / static_cast<double>(unit);
  }
  [[nodiscard]] double makespan() const {
    return static_cast<double>(timeline.iteration_ends.front().picoseconds) /
           static_cast<double>(unit);
  }

  program::Program program;
  Timeline timeline;
};

/// Bytes a second of each of the GPUs of a DGX-2H that copy to the host at the same time.
double copy_rate(const std::vector<int>& gpus) {
  constexpr Bytes payload = 3_GB;
  HandBuilt built;
  built.add_sequence({collective(payload, {}, Stream::copy_out, 0, cost::CollectiveKind::to_host)});
  built.add_sequence({});
  for (int gpu = 0; gpu < 16; ++gpu) {
    const auto found = std::ranges::find(gpus, gpu);
    const bool copies = found != gpus.end();
    built.add_device(copies ? 0 : 1, {copies ? static_cast<int>(found - gpus.begin()) : -1});
  }
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  const Folding folding = fold(built.program, cluster("dgx-2h", 1), profile.collective, false);
  const Timeline timeline = run(built.program, folding, built.prices, 1);
  const auto actor = static_cast<int>(std::ranges::find(folding.actors, gpus[0], &Actor::device) -
                                      folding.actors.begin());
  const double seconds =
      static_cast<double>(ends(timeline, actor, 0)[0] - begins(timeline, actor, 0)[0]) * 1e-12;
  return payload.value / (seconds - profile.host_copy.latency.value.value);
}

}  // namespace

// Alone 12 GB/s (gpu-benches 1c36d50: 12.1 for 16 MB). Pairs of GPUs share a switch, and two of
// these the way to a processor: about 3 GB/s if all copy, as ZeRO-Infinity (arXiv:2104.07857) has
// for a DGX-2 in figure 2b; recalled, not looked up.
TEST_CASE("GPUs of a DGX-2 share the ways to their processors") {
  CHECK(close(copy_rate({0}), 12.0e9, 0.01));
  CHECK(close(copy_rate({0, 1}), 6.0e9, 0.01));
  CHECK(close(copy_rate({0, 8}), 12.0e9, 0.01));
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  CHECK(close(copy_rate(all), 3.0e9, 0.01));
}

TEST_CASE("a layer waits until there is room for what it keeps") {
  for (const int layers : {3, 6}) {
    INFO(layers << " layers");
    // One at a time: every layer but the first waits for the copy before it.
    CHECK(close(Swapped(layers, 0, 2, 5).forward_pass(), layers * 2 + (layers - 1) * 5, 1e-5));
    // Two at a time: copies of five units in a row after the first layer; the last layer begins
    // when all but the last two have left.
    CHECK(close(Swapped(layers, 1, 2, 5).forward_pass(), 2 + (layers - 2) * 5 + 2, 1e-5));
    // Shorter than the layers: hidden.
    CHECK(close(Swapped(layers, 1, 3, 2).forward_pass(), layers * 3, 1e-5));
  }
}

TEST_CASE("copies out and back are back to back where nothing else takes time") {
  // Out one after the other from the end of the first layer on; the last one back when it is out,
  // and the others behind it.
  const double out = 1 + 6 * 4;
  CHECK(close(Swapped(6, 2, 1, 4).makespan(), out + 6 * 4, 1e-5));
}

TEST_CASE("GPUs behind one PCIe link copy at half the rate each") {
  const double alone = Swapped(6, 1, 2, 5, 2, false).forward_pass();
  CHECK(close(alone, 2 + 4 * 5 + 2, 1e-5));
  CHECK(close(Swapped(6, 1, 2, 5, 2, true).forward_pass(), 2 + 4 * 10 + 2, 1e-5));
}

}  // namespace stratagem::sim

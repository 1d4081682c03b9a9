// Steps and parameters on the host: how long an iteration takes, and what lies in the server's
// memory.
#include <memory>
#include <numeric>

#include "sim/host_memory.hpp"
#include "tests/catch.hpp"
#include "tests/sim/unit_chain.hpp"
#include "tests/sim/with_host.hpp"

namespace stratagem::sim {
namespace {

/// What a layer of the chain takes, in units; `copy`: its weights, 128 bytes, over PCIe.
struct Costs {
  double forward = 1;
  double backward = 1;
  double step = 0;
  double copy = 0;
};

/// A chain of layers on one micro-batch, with a processor behind PCIe. Its weights are those of the
/// layers and a shift an eighth of one: w = layers + 1/8 layers all together.
class Offloaded {
 public:
  Offloaded(int layers, const std::string& strategy, const Costs& costs, int ranks = 1,
            bool shared = false)
      : program(UnitPipeline::lowered(strategy, chain(layers), 1)) {
    const BytesPerSecond pcie = 128_B / Seconds{costs.copy * 1e-12 * static_cast<double>(unit)};
    const Folding folding = fold(program, with_host(ranks, pcie, shared), ideal_network(), false);
    const Prices prices = price(program, [&](const program::Task& task) {
      const bool layer = task.name.starts_with("product");
      const double time = !layer                                 ? 0
                          : task.stream == program::Stream::host ? costs.step
                          : task.name == "product"               ? costs.forward
                          : task.name == "product.B"             ? costs.backward
                                                                 : 0;
      return Price{.device = {static_cast<std::int64_t>(time * unit)}};
    });
    timeline = run(program, folding, prices, 4);
  }

  [[nodiscard]] double period() const {
    const std::vector<Instant>& ends = timeline.iteration_ends;
    return static_cast<double>((ends.back() - ends[ends.size() - 2]).count) /
           static_cast<double>(unit);
  }

  program::Program program;
  Timeline timeline;
};

constexpr const char* steps_there = R"({"offload": "optimizer"})";
constexpr const char* delayed = R"({"offload": {"of": "optimizer", "delayed_update": true}})";

std::string parameters_there(int prefetch, int ranks = 1) {
  return R"({"offload": "parameters", "data": )" + std::to_string(ranks) +
         R"(, "zero": {"stage": 3, "prefetch": )" + std::to_string(prefetch) + "}}";
}

Bytes in(const HostMemory& host, program::Category category) {
  return host.peak.by_category[static_cast<std::size_t>(category)];
}

}  // namespace

// Gradients leave in one piece after the backward pass; then the layers step one by one, and each
// one's weights come back while the next one steps, if that takes longer.
TEST_CASE("an offloaded step takes its gradients' way, its steps and the last weights' way back") {
  for (const int layers : {1, 4}) {
    const double w = layers + 0.125;
    CHECK(close(Offloaded(layers, steps_there, {2, 3, 7, 5}).period(),
                layers * (2 + 3) + w * 5 + layers * 7 + 5, 1e-5));
    // Steps that take nothing: all of the weights' way back.
    CHECK(close(Offloaded(layers, steps_there, {2, 3, 0, 5}).period(),
                layers * (2 + 3) + w * 5 + w * 5, 1e-5));
  }
}

// Each of two ranks copies half the bytes: over one link both together as long as one copies all.
TEST_CASE("two GPUs behind one PCIe link share it, two with a link of their own do not") {
  const std::string two = R"({"offload": "optimizer", "data": 2, "zero": 2})";
  const double w = 4.125;
  CHECK(close(Offloaded(4, two, {2, 3, 7, 5}, 2, true).period(), 4 * (2 + 3) + w * 5 + 4 * 7 + 5,
              1e-5));
  CHECK(close(Offloaded(4, two, {2, 3, 7, 5}, 2, false).period(),
              4 * (2 + 3) + w * 2.5 + 4 * 7 + 2.5, 1e-5));
  CHECK(close(Offloaded(4, parameters_there(1, 2), {0, 0, 7, 5}, 2, true).period(),
              3 * w * 5 + 4 * 7, 1e-5));
  CHECK(close(Offloaded(4, parameters_there(1, 2), {0, 0, 7, 5}, 2, false).period(),
              3 * w * 2.5 + 4 * 7, 1e-5));
}

// The steps of iteration i - 1 run beside iteration i, at whose end gradients have left and all
// weights come back at once.
TEST_CASE("delayed steps are hidden by an iteration that is as long, and else hide it") {
  const double w = 4.125;
  CHECK(close(Offloaded(4, delayed, {8, 9, 7, 2}).period(), 4 * (8 + 9) + w * 2 + w * 2, 1e-5));
  CHECK(close(Offloaded(4, delayed, {2, 3, 20, 2}).period(), 4 * 20 + w * 2, 1e-5));
  // Without delay the first of these takes longer by the steps, less what comes back beside them.
  CHECK(close(Offloaded(4, steps_there, {8, 9, 7, 2}).period(), 4 * (8 + 9) + w * 2 + 4 * 7 + 2,
              1e-5));
}

// Without computations the copy engine is never idle: all weights forward, all of them backward;
// then gradients leave, and steps need no way back.
TEST_CASE("parameters on the host are fetched twice an iteration, at the speed of PCIe") {
  for (const int prefetch : {0, 1, 3}) {
    INFO("prefetch " << prefetch);
    CHECK(close(Offloaded(4, parameters_there(prefetch), {0, 0, 7, 5}).period(),
                2 * 4.125 * 5 + 4.125 * 5 + 4 * 7, 1e-5));
  }
}

TEST_CASE("fetches of layers that compute longer are hidden but for the first, with prefetch") {
  const double w = 4.125;
  // Both of the first two segments at once: the shift, of no time, and the first layer.
  CHECK(close(Offloaded(4, parameters_there(1), {6, 6, 7, 5}).period(),
              1.125 * 5 + 4 * 12 + w * 5 + 4 * 7, 1e-5));
  // None is fetched before the one before has run: nothing is hidden.
  CHECK(close(Offloaded(4, parameters_there(0), {6, 6, 7, 5}).period(),
              2 * w * 5 + 4 * 12 + w * 5 + 4 * 7, 1e-5));
}

// Ren et al., section 4.1: 12 bytes of states and 2 of gradients a parameter; a second buffer of
// gradients where steps are delayed (section 5.2: those of the next iteration arrive meanwhile).
TEST_CASE("the host keeps 14 bytes a parameter, 16 with its weights or with delayed steps") {
  using program::Category;
  const double parameters = 8 + 4 * 64;
  const auto hosts = [](const std::string& strategy, int ranks, int per_server) {
    const Offloaded run(4, strategy, {1, 1, 1, 1}, ranks);
    return host_memory(run.program, run.timeline, per_server);
  };
  for (const int ranks : {1, 2, 4}) {
    INFO(ranks << " ranks");
    const std::string zero = R"({"offload": "optimizer", "zero": 2, "data": )";
    const auto all = hosts(zero + std::to_string(ranks) + "}", ranks, ranks);
    REQUIRE(all.size() == 1);
    CHECK(all[0].count == 1);
    CHECK(in(all[0], Category::optimizer_states).value == 12 * parameters);
    CHECK(in(all[0], Category::gradients).value == 2 * parameters);
    CHECK(all[0].peak.total.value == 14 * parameters);
    const auto with_weights = hosts(parameters_there(1, ranks), ranks, ranks);
    CHECK(in(with_weights[0], Category::parameters).value == 2 * parameters);
    CHECK(with_weights[0].peak.total.value == 16 * parameters);
  }
  CHECK(hosts(delayed, 1, 1)[0].peak.total.value == 16 * parameters);
  CHECK(hosts(R"({"data": 2, "zero": 2})", 2, 2).empty());
  // A server for each rank: half of it on each of two that are alike.
  const auto apart = hosts(R"({"offload": "optimizer", "zero": 2, "data": 2})", 2, 1);
  REQUIRE(apart.size() == 1);
  CHECK(apart[0].count == 2);
  CHECK(apart[0].peak.total.value == 14 * parameters / 2);
}

// Every layer keeps its input, 128 bytes over all ranks, and the first is back last.
TEST_CASE(
    "swapped activations lie on the host from the begin of their way out to the end of that back") {
  for (const int ranks : {1, 2}) {
    const Offloaded run(
        4, R"({"swap": {"layers": 4, "prefetch": 1}, "data": )" + std::to_string(ranks) + "}",
        {2, 2, 0, 1}, ranks);
    const auto hosts = host_memory(run.program, run.timeline, ranks);
    REQUIRE(hosts.size() == 1);
    CHECK(in(hosts[0], program::Category::activations).value == 4 * 128);
    CHECK(hosts[0].peak.total.value == 4 * 128);
    const ByCategory& last = hosts[0].steps.back().live;
    CHECK(std::accumulate(last.begin(), last.end(), Bytes{}).value == 0);
  }
}

}  // namespace stratagem::sim

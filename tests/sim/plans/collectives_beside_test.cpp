// Collectives that a stack runs beside computations: what that saves, by kind, with kernels and a
// network that take what a test says.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim {
namespace {

using cost::CollectiveKind;
using model::Pass;

constexpr int layer_count = 4;
constexpr Bytes activation = 12.0 * 20 * 48 * 2_B;  // b*s*h of lowering::small_gpt in fp16

const cost::CollectiveBeside reduced{CollectiveKind::all_reduce, true, Pass::weight_gradient};
const cost::CollectiveBeside scattered{CollectiveKind::reduce_scatter, true, Pass::weight_gradient};
const cost::CollectiveBeside gathered{CollectiveKind::all_gather, false, Pass::input_gradient};

/// Units that products of column-split layers take for their gradients, and an activation on a
/// link.
struct Durations {
  double input = 0;
  double weight = 0;
  double activation = 0;
};

/// Units of an iteration of a GPT on two tensor ranks where nothing else takes time.
double makespan(const std::string& more, const std::vector<cost::CollectiveBeside>& rules,
                const Durations& times) {
  const model::Graph graph = model::gpt(lowering::small_gpt);
  const program::Program program = UnitPipeline::lowered(R"({"tensor": 2)" + more + "}", graph, 1,
                                                         {.rules = {rules.begin(), rules.end()}});
  const BytesPerSecond bandwidth = activation / Seconds{times.activation * 1e-12 * unit};
  const Folding folding = fold(program, instant_cluster(2, bandwidth), ideal_network(), false);
  const Prices prices = price(program, [&](const program::Task& task) {
    double units = 0;
    for (const char* product : {"attention.qkv", "mlp.fc1", "logits"}) {
      if (task.name == std::string(product) + ".B") units = times.input;
      if (task.name == std::string(product) + ".W") units = times.weight;
    }
    return Price{.device = {static_cast<std::int64_t>(units * unit)}};
  });
  const Timeline timeline = run(program, folding, prices, 1);
  return static_cast<double>(timeline.iteration_ends.front().picoseconds) / unit;
}

/// Units, but for picoseconds that were rounded.
bool equal(double a, double b) { return std::abs(a - b) < 1e-3; }

/// The products whose input gradients tensor ranks sum up: two of each layer, and the logits.
constexpr int column_split = 2 * layer_count + 1;

}  // namespace

TEST_CASE("an all-reduce beside the product for the weight gradient hides the shorter of the two") {
  // Of each column-split layer, one after the other or side by side: w + a or max(w, a). An
  // all-reduce of two ranks puts all of the tensor on a link: 2 (n-1)/n = 1.
  for (const Durations& times : {Durations{1, 3, 2}, Durations{1, 2, 5}, Durations{4, 0, 2}}) {
    const double hidden = column_split * std::min(times.weight, times.activation);
    const double blocking = makespan("", {}, times);
    CHECK(equal(blocking - makespan("", {reduced}, times), hidden));
    CHECK(makespan("", {scattered, gathered}, times) == blocking);  // none of these here
  }
}

TEST_CASE(
    "with sequence parallelism scatters run beside one product and gathers beside the other") {
  // A layer's input is gathered for the product that gives the weight gradient, the input gradient
  // is scattered; either puts half of the tensor on a link: c = a/2. In a row b + c + w + c, side
  // by side max(b, c) + max(w, c).
  const std::string more = R"(, "sequence_parallel": true)";
  for (const Durations& times : {Durations{1, 3, 4}, Durations{3, 1, 4}, Durations{5, 6, 4}}) {
    const double c = times.activation / 2;
    const double blocking = makespan(more, {}, times);
    const double beside_weight = column_split * std::min(times.weight, c);
    const double beside_input = column_split * std::min(times.input, c);
    CHECK(equal(blocking - makespan(more, {scattered}, times), beside_weight));
    CHECK(equal(blocking - makespan(more, {gathered}, times), beside_input));
    CHECK(equal(blocking - makespan(more, {scattered, gathered}, times),
                beside_weight + beside_input));
  }
}

TEST_CASE("where weight gradients have cells of their own, no product is there to run beside") {
  const std::string split = R"(, "pipeline": 1, "schedule": "zb-h1")";
  const Durations times{1, 3, 2};
  CHECK(makespan(split, {reduced}, times) == makespan(split, {}, times));
}

TEST_CASE("collectives of the forward pass and of what runs again wait as before") {
  // Recomputed or not, as many input gradients are summed beside as many products.
  const Durations times{1, 3, 2};
  const std::string again = R"(, "recompute": "full")";
  CHECK(equal(makespan(again, {}, times) - makespan(again, {reduced}, times),
              column_split * std::min(times.weight, times.activation)));
  const model::Graph graph = model::gpt(lowering::small_gpt);
  const auto forward = [&](const std::vector<cost::CollectiveBeside>& rules) {
    const program::Program program = UnitPipeline::lowered(R"({"tensor": 2})", graph, 1,
                                                           {.rules = {rules.begin(), rules.end()}});
    std::vector<std::vector<int>> waits;
    for (int segment = 0; segment < layer_count + 2; ++segment) {
      const program::Block& block =
          lowering::block_of(program, segment, placement::CellPass::forward);
      for (const program::Task& task : block.tasks) waits.push_back(task.waits);
    }
    return waits;
  };
  CHECK(forward({reduced, scattered, gathered}) == forward({}));
}

}  // namespace stratagem::sim

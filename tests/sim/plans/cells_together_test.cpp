// Cells that run together take turns: each computes beside the other's collectives. Closed forms,
// on kernels and a network that take what a test says.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "strategies/language/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim::cells_together_test {
namespace {

/// Units that a product takes before each all-reduce of a layer, forward and backward, and that the
/// all-reduce takes. Each layer has two of either.
struct Durations {
  double forward = 0;
  double backward = 0;
  double reduce = 0;
};

/// A GPT whose layers two tensor ranks divide as Megatron-LM does, with an order of cells.
program::Program ordered(const model::Graph& graph, const std::string& order, int micro_batches) {
  const std::string text = R"~({"stages": ["**"], "primitives": [
    {"op-trans": "layers.*.*, layers.*.attention.projection.bias_add,
      layers.*.attention.{output_dropout,residual}, layers.*.mlp.fc2.bias_add,
      layers.*.mlp.{dropout,residual}, embedding.**, head.**", "dim": null, "parts": 2,
      "axis": "tensor"},
    {"op-trans": "layers.*.attention.qkv.**, layers.*.mlp.fc1.**, layers.*.mlp.gelu", "dim": "n",
      "parts": 2, "axis": "tensor"},
    {"op-trans": "layers.*.attention.{split_heads,scores,softmax,dropout,context,merge_heads}",
      "dim": "heads", "parts": 2, "axis": "tensor"},
    {"op-trans": "layers.*.attention.projection, layers.*.mlp.fc2", "dim": "k", "parts": 2,
      "axis": "tensor"},
    {"op-assign": "**", "axis": "tensor", "stride": 1},
    {"op-assign": "stage(0)", "device": 0}, {"op-order": ")~" +
                           order + R"~("}]})~";
  std::string line = text;
  std::ranges::replace(line, '\n', ' ');
  const JsonReader file = JsonReader::from_text(line, "plan.json");
  return lowering::lower(strategies::read_plan(file, graph, micro_batches),
                         lowering::plain_stack());
}

/// Units of an iteration.
double makespan(int layers, const std::string& order, int micro_batches, const Durations& times) {
  model::GptConfig config = lowering::small_gpt;
  config.layers = layers;
  const program::Program program = ordered(model::gpt(config), order, micro_batches);
  // An all-reduce of two ranks puts all of the tensor on a link: 2 (n-1)/n = 1.
  const Bytes activation = 1.0 * config.batch * config.sequence * config.hidden * 2_B;
  const BytesPerSecond bandwidth = activation / Seconds{times.reduce * 1e-12 * unit};
  const Folding folding = fold(program, instant_cluster(2, bandwidth), ideal_network(), false);
  const Prices prices = price(program, [&](const program::Task& task) {
    double units = 0;
    for (const char* product : {"attention.projection", "mlp.fc2"})
      if (task.name == product) units = times.forward;
    for (const char* product : {"attention.qkv.B", "mlp.fc1.B"})
      if (task.name == product) units = times.backward;
    return Price{.device = {static_cast<std::int64_t>(units * unit)}};
  });
  const Timeline timeline = run(program, folding, prices, 1);
  return static_cast<double>(timeline.iteration_ends.front().picoseconds) / unit;
}

/// Units that one more layer takes.
double of_a_layer(const std::string& order, int micro_batches, const Durations& times) {
  return (makespan(8, order, micro_batches, times) - makespan(6, order, micro_batches, times)) / 2;
}

/// Of two chains of computation and all-reduce that share both streams, a round of both: no shorter
/// than either stream's work, nor than what a chain does in a row.
double round_of(double one, double other, double reduce) {
  return std::max({one + other, 2 * reduce, std::max(one, other) + reduce});
}

/// A mixture of two experts on 4 x 2 ranks.
model::GptConfig mixture() {
  model::GptConfig config = lowering::small_gpt;
  config.layers = 8;
  config.experts = {.count = 2, .per_token = 1, .capacity_factor = 1};
  return config;
}
program::Program lowered_mixture(const std::string& schedule, int micro_batches) {
  const std::string ranks = R"({"pipeline": 4, "data": 2, "expert": 2, "schedule": ")";
  return UnitPipeline::lowered(ranks + schedule + R"("})", model::gpt(mixture()), micro_batches);
}

/// Units of an iteration where an all-to-all takes that long; each layer has two products, which
/// take a unit in each pass.
double of_experts(const std::string& schedule, int micro_batches, double all_to_all) {
  const model::GptConfig config = mixture();
  const program::Program program = lowered_mixture(schedule, micro_batches);
  // Of a rank's half of the samples the other rank's expert gets half.
  const Bytes sent = 0.25 * config.batch * config.sequence * config.hidden * 2_B;
  const BytesPerSecond bandwidth{all_to_all > 0 ? sent.value / (all_to_all * 1e-12 * unit) : 1e30};
  const Folding folding = fold(program, instant_cluster(8, bandwidth), ideal_network(), false);
  const Prices prices = price(program, [&](const program::Task& task) {
    bool counts = false;
    for (const std::string product : {"attention.qkv", "mlp.fc1"})
      counts = counts || task.name == product || task.name == product + ".B" ||
               task.name == product + ".W";
    return Price{.device = {counts ? unit : 0}};
  });
  const Timeline timeline = run(program, folding, prices, 1);
  return static_cast<double>(timeline.iteration_ends.front().picoseconds) / unit;
}

/// But for picoseconds that were rounded.
bool equal(double a, double b) { return std::abs(a - b) < 1e-3; }

}  // namespace

TEST_CASE("cells that run together take the longer of computation and communication") {
  for (const Durations& t : {Durations{4, 7, 2}, Durations{2, 3, 5}, Durations{1, 6, 3},
                             Durations{5, 2, 4}, Durations{3, 3, 3}}) {
    CAPTURE(t.forward, t.backward, t.reduce);
    const double forward = 2 * (t.forward + t.reduce), backward = 2 * (t.backward + t.reduce);
    CHECK(equal(of_a_layer("F(0,0) F(0,1) B(0,0) B(0,1)", 2, t), 2 * (forward + backward)));
    CHECK(equal(of_a_layer("F(0,0)+F(0,1) B(0,0)+B(0,1)", 2, t),
                2 * (round_of(t.forward, t.forward, t.reduce) +
                     round_of(t.backward, t.backward, t.reduce))));
    CHECK(equal(of_a_layer("F(0,0) F(0,1)+B(0,0) B(0,1)", 2, t),
                forward + 2 * round_of(t.forward, t.backward, t.reduce) + backward));
  }
}

TEST_CASE("DualPipe hides all-to-alls, and is faster than ZB-H1 with and without them") {
  // Its bubble is (p/2-1)(F&B + B - 3W) against (p-1)(F + B - 2W): 2 units of a stage for 3.
  CHECK(equal(of_experts("zb-h1", 16, 0) - of_experts("dualpipe", 16, 0), 2 * 2));
  // A micro-batch more is 2 products of 2 layers in 3 passes, and 4 all-to-alls of each layer, of
  // which ZB-H1 hides none. DualPipe leaves those at the ends of pairs, and messages of stages.
  for (const double all_to_all : {0.5, 1.0}) {
    const auto more = [&](const std::string& schedule) {
      return (of_experts(schedule, 32, all_to_all) - of_experts(schedule, 16, all_to_all)) / 16;
    };
    CHECK(more("zb-h1") > 12 + 8 * all_to_all - 1e-3);
    CHECK(more("dualpipe") < 12 + 5 * all_to_all);
  }
}

TEST_CASE("of cells that run together the one begins that communicates first") {
  // A backward cell's first layer undoes the combination of experts, a forward cell's attends.
  const program::Program program = lowered_mixture("dualpipe", 16);
  for (const program::Sequence& sequence : program.sequences) {
    const std::vector<int> first = program::first_beside(sequence);
    int pairs = 0, before = -1;
    for (const program::Launch& launch : program::unrolled(sequence).launches) {
      const int group = std::exchange(before, first[launch.call]);
      if (first[launch.call] == group || std::ranges::count(first, first[launch.call]) == 1)
        continue;
      CHECK(sequence.calls[launch.call].cell.pass == placement::CellPass::backward);
      ++pairs;
    }
    CHECK(pairs > 0);
  }
}

TEST_CASE("cells that run together and do not communicate take as long as one after the other") {
  const Durations t{4, 7, 1e-9};
  CHECK(equal(of_a_layer("F(0,0)+F(0,1) B(0,0)+B(0,1)", 2, t), 4 * (t.forward + t.backward)));
}

}  // namespace stratagem::sim::cells_together_test

// Cells that run together take turns: each computes beside the other's collectives. Closed forms,
// on kernels and a network that take what a test says.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim::cells_together_test {
namespace {

/// A mixture of two experts.
model::GptConfig mixture(int layers = 8) {
  model::GptConfig config = lowering::small_gpt;
  config.layers = layers;
  config.experts = {.count = 2, .per_token = 1, .capacity_factor = 1};
  return config;
}

/// Units that each of a layer's two products takes, forward and backward, and that a collective
/// takes. Each layer has two of them in each pass, too.
struct Durations {
  double forward = 0;
  double backward = 0;
  double collective = 0;
};

/// Units of an iteration. A collective puts `sent` on a link.
double makespan(const program::Program& program, int devices, Bytes sent, const Durations& times) {
  const double network = times.collective * 1e-12 * unit;
  const BytesPerSecond bandwidth{network > 0 ? sent.value / network : 1e30};
  const Folding folding =
      fold(program, instant_cluster(devices, bandwidth), ideal_network(), false);
  const Prices prices = price(program, [&](const program::Task& task) {
    double units = 0;
    for (const std::string product : {"attention.qkv", "mlp.fc1"}) {
      if (task.name == product) units = times.forward;
      if (task.name == product + ".B" || task.name == product + ".W") units = times.backward / 2;
    }
    return Price{.device = {static_cast<std::int64_t>(units * unit)}};
  });
  const Timeline timeline = run(program, folding, prices, 1);
  return static_cast<double>(timeline.iteration_ends.front().picoseconds) / unit;
}

Bytes activation(const model::GptConfig& config) {
  return static_cast<double>(config.batch * config.sequence * config.hidden) * 2_B;
}

/// Units that two more micro-batches take in one more layer of two ranks. `pairs`: neighbours among
/// forward and among backward cells run together.
double of_two_more(const std::string& ranks, const std::string& schedule, bool pairs, Bytes sent,
                   const Durations& times) {
  const auto takes = [&](int layers, int micro_batches) {
    const model::Graph graph = model::gpt(mixture(layers));
    strategies::Plan plan = lowering::plan_of(
        graph, "{" + ranks + ", \"schedule\": \"" + schedule + "\"}", micro_batches);
    for (int m = 0; pairs && m < micro_batches; m += 2) {
      for (const auto pass : {placement::CellPass::forward, placement::CellPass::backward})
        plan.run_together({0, m, pass}, {0, m + 1, pass});
    }
    return makespan(lowering::lower(plan, lowering::plain_stack()), 2, sent, times);
  };
  return (takes(8, 6) - takes(7, 6)) - (takes(8, 4) - takes(7, 4));
}

/// The same where ranks have an expert each and exchange a quarter of what they have: of a rank's
/// half of the samples the other rank's expert gets half.
double of_experts(const std::string& schedule, bool pairs, const Durations& times) {
  return of_two_more(R"("data": 2, "expert": 2, "chunks": 1)", schedule, pairs,
                     0.25 * activation(mixture()), times);
}

/// Of two chains of computations and all-to-alls that share both streams, a round of both: no
/// shorter than either stream's work, nor than what a chain does in a row.
double round_of(double one, double other, double exchange) {
  return std::max({one + other, 2 * exchange, std::max(one, other) + exchange});
}

program::Program lowered_mixture(const std::string& schedule, int micro_batches) {
  const std::string ranks = R"({"pipeline": 4, "data": 2, "expert": 2, "schedule": ")";
  return UnitPipeline::lowered(ranks + schedule + R"("})", model::gpt(mixture()), micro_batches);
}

/// Units of an iteration on 4 x 2 ranks where an all-to-all takes that long, and each product a
/// unit in each pass.
double of_stages(const std::string& schedule, int micro_batches, double all_to_all) {
  return makespan(lowered_mixture(schedule, micro_batches), 8, 0.25 * activation(mixture()),
                  {1, 2, all_to_all});
}

/// But for picoseconds that were rounded.
bool equal(double a, double b) { return std::abs(a - b) < 1e-3; }

}  // namespace

TEST_CASE("cells that run together take the longer of computation and all-to-alls") {
  for (const Durations& t : {Durations{4, 7, 2}, Durations{2, 3, 5}, Durations{1, 6, 3},
                             Durations{5, 2, 4}, Durations{3, 3, 3}}) {
    CAPTURE(t.forward, t.backward, t.collective);
    const double alone = 2 * (t.forward + t.collective) + 2 * (t.backward + t.collective);
    CHECK(equal(of_experts("gpipe", false, t), 2 * alone));
    CHECK(equal(of_experts("gpipe", true, t),
                2 * round_of(t.forward, t.forward, t.collective) +
                    2 * round_of(t.backward, t.backward, t.collective)));
    CHECK(equal(of_experts("combined-1f1b", false, t),
                2 * 2 * round_of(t.forward, t.backward, t.collective)));
  }
}

TEST_CASE("cells that run together wait for the sums of tensor ranks where these stand") {
  const Durations t{4, 7, 2};
  const auto takes = [&](bool pairs) {
    return of_two_more(R"("tensor": 2)", "gpipe", pairs, activation(mixture()), t);
  };
  CHECK(takes(false) > 2 * 2 * (t.forward + t.backward + t.collective));
  CHECK(equal(takes(true), takes(false)));
}

TEST_CASE("DualPipe hides all-to-alls, and is faster than ZB-H1 with and without them") {
  // Its bubble is (p/2-1)(F&B + B - 3W) against (p-1)(F + B - 2W): 2 units of a stage for 3.
  CHECK(equal(of_stages("zb-h1", 16, 0) - of_stages("dualpipe", 16, 0), 2 * 2));
  // A micro-batch more is 2 products of 2 layers in 3 passes, and 4 all-to-alls of each layer, of
  // which ZB-H1 hides none. DualPipe leaves those at the ends of pairs, and messages of stages.
  for (const double all_to_all : {0.5, 1.0}) {
    const auto more = [&](const std::string& schedule) {
      return (of_stages(schedule, 32, all_to_all) - of_stages(schedule, 16, all_to_all)) / 16;
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
  CHECK(equal(of_experts("gpipe", true, {4, 7, 0}), 2 * 2 * (4 + 7)));
}

}  // namespace stratagem::sim::cells_together_test

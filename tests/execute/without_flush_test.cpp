// Plans without a flush train by the rules of their papers, told here without any program's word.
#include <algorithm>
#include <string>

#include "execute/stale_weights.hpp"
#include "execute/trial.hpp"
#include "kernels/adam.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute::without_flush_test {
namespace {

using model::TensorId;

constexpr int iterations = 6;

/// Untied: no weight is on two stages.
const model::Graph& untied_gpt() {
  static const model::Graph graph = model::gpt({.layers = 4,
                                                .hidden = 16,
                                                .heads = 4,
                                                .sequence = 8,
                                                .vocabulary = 24,
                                                .batch = 2,
                                                .tied = false});
  return graph;
}

/// What each iteration had: its loss, and the gradients of all parameters.
using History = std::vector<Trained>;

double distance(const History& history, const History& reference) {
  REQUIRE(history.size() == reference.size());
  double worst = 0;
  for (std::size_t i = 0; i < reference.size(); ++i)
    worst = std::max(worst, distance(history[i], reference[i]));
  return worst;
}

History history_of(const model::Graph& graph, const program::Program& program, int micro_batches) {
  REQUIRE(refusal(program, graph).empty());
  History history(iterations);
  const Settings settings{.seed = 7, .micro_batches = micro_batches};
  const auto ranks = static_cast<int>(program.devices.size());
  kernels::run_ranks(ranks, [&](kernels::Communicator& world) {
    Interpreter<double> rank(program, graph, settings, world);
    const auto losses =
        rank.train(iterations, [&](TensorId parameter, const Value<double>& gradient) {
          collect(gradient, model::origin_of(graph.tensors[parameter], parameter),
                  history[rank.iteration()]);
        });
    for (int i = 0; i < iterations; ++i) history[i].losses = {losses[i]};
  });
  return history;
}

/// Which version of its weights a stage reads for a micro-batch, counted through all iterations;
/// version v is there after v updates, each of which follows so many micro-batches.
using Rule = std::function<int(int stage, int micro_batch)>;

/// The stage of the first operator that reads a parameter.
int stage_of(const strategies::Plan& plan, TensorId parameter) {
  const model::Graph& graph = plan.graph();
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (const int segment : plan.stages[stage]) {
      for (const model::OpId op : graph.segments[segment].forward) {
        if (std::ranges::count(graph.operators[op].inputs, parameter) > 0)
          return static_cast<int>(stage);
      }
    }
  }
  throw std::out_of_range("no stage reads that parameter");
}

/// A parameter with all its versions, and what its steps keep.
struct Weight {
  int stage = 0;
  std::vector<std::vector<double>> versions;
  std::vector<double> gradient, momentum, variance;
};

/// w(t+1) = w(t) - step(mean over micro-batches of grad f(w_1 at its version, ..., w_n at its
/// own)), on one device, one micro-batch at a time, on weights that are put there for each of them.
class OneDevice {
 public:
  OneDevice(const model::Graph& graph, const strategies::Plan& plan, kernels::Communicator& alone)
      : planned_(planned(graph, "{}", 1)),
        rank_(planned_.program, planned_.plan.graph(), {.seed = 7, .micro_batches = 1}, alone) {
    for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
      if (graph.tensors[id].role != model::Role::parameter) continue;
      const auto parameter = static_cast<TensorId>(id);
      const Elements<double>& first = rank_.parameter(parameter).data;
      Weight& weight = weights_[parameter];
      weight.stage = stage_of(plan, parameter);
      weight.versions = {{first.begin(), first.end()}};
      weight.momentum.resize(first.size());
      weight.variance.resize(first.size());
    }
  }

  Trained iterate(int iteration, int micro_batches, const Rule& rule) {
    Trained trained{.losses = {0}, .gradients = {}};
    for (auto& [id, weight] : weights_) weight.gradient.assign(weight.momentum.size(), 0);
    for (int m = 0; m < micro_batches; ++m)
      trained.losses[0] += run(iteration * micro_batches + m, micro_batches, rule) / micro_batches;
    for (auto& [id, weight] : weights_) {
      trained.gradients[id] = weight.gradient;
      weight.versions.push_back(weight.versions.back());
      kernels::Adam adam;
      adam.step = iteration + 1;
      kernels::adam<double>(adam, weight.gradient, weight.versions.back(), weight.momentum,
                            weight.variance);
    }
    return trained;
  }

 private:
  double run(int micro_batch, int micro_batches, const Rule& rule) {
    for (auto& [id, weight] : weights_)
      std::ranges::copy(weight.versions.at(rule(weight.stage, micro_batch)),
                        rank_.parameter(id).data.begin());
    return rank_.iterate([&](TensorId id, const Value<double>& gradient) {
      std::vector<double>& sum = weights_.at(id).gradient;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient.data[i] / micro_batches;
    });
  }

  Planned planned_;
  Interpreter<double> rank_;
  std::map<TensorId, Weight> weights_;
};

History by_rule(const Planned& plan, const Rule& rule) {
  const auto alone = kernels::lone();
  OneDevice device(untied_gpt(), plan.plan, *alone);
  History history;
  for (int i = 0; i < iterations; ++i)
    history.push_back(device.iterate(i, plan.plan.micro_batches, rule));
  return history;
}

/// On stage s of p the 1F1B order has p-1-s forward cells ahead of the first backward cell, so that
/// that many micro-batches fewer have come back when one begins.
int newest(int stage, int stages, int micro_batch, int micro_batches) {
  return std::max(0, micro_batch - (stages - 1 - stage)) / micro_batches;
}

struct Case {
  std::string strategy;
  int stages = 2;
  int micro_batches = 1;
};

Case pipeline(const std::string& schedule, int stages, int micro_batches,
              const std::string& more = "") {
  return {R"({"pipeline": )" + std::to_string(stages) + R"(, "schedule": ")" + schedule + "\"" +
              more + "}",
          stages, micro_batches};
}

double error(const Case& c, const Rule& rule) {
  CAPTURE(c.strategy, c.micro_batches);
  const Planned plan = planned(untied_gpt(), c.strategy, c.micro_batches);
  return distance(history_of(plan.plan.graph(), plan.program, c.micro_batches),
                  by_rule(plan, rule));
}

/// Source: Narayanan et al., PipeDream, SOSP 2019, section 3.3, for one micro-batch an iteration:
/// w(t+1) = w(t) - step(grad f(w_1^(t-n+1), ..., w_n^(t))).
TEST_CASE("PipeDream's stages read the weights that were newest when a micro-batch came") {
  const Case c =
      GENERATE(pipeline("pipedream", 2, 1), pipeline("pipedream", 4, 1),
               pipeline("pipedream", 2, 4), pipeline("pipedream", 4, 2),
               pipeline("pipedream", 4, 3), pipeline("pipedream", 2, 2, R"(, "data": 2)"),
               pipeline("pipedream", 2, 2, R"(, "tensor": 2)"),
               pipeline("pipedream", 4, 1, R"(, "recompute": "full")"));
  CHECK(error(c, [&](int stage, int micro_batch) {
          return newest(stage, c.stages, micro_batch, c.micro_batches);
        }) <= 1e-9);
}

/// The same, vertical sync: w(t+1) = w(t) - step(grad f(w_1^(t-n+1), ..., w_n^(t-n+1))).
TEST_CASE("with vertical sync all stages read the version that the first one read") {
  const Case c =
      GENERATE(pipeline("pipedream-vertical", 2, 1), pipeline("pipedream-vertical", 4, 1),
               pipeline("pipedream-vertical", 4, 2),
               pipeline("pipedream-vertical", 2, 2, R"(, "tensor": 2)"));
  CHECK(error(c, [&](int /*stage*/, int micro_batch) {
          return newest(0, c.stages, micro_batch, c.micro_batches);
        }) <= 1e-9);
}

/// Source: Narayanan et al., PipeDream-2BW, ICML 2021, section 3.1:
/// W(t+1) = W(t) - step(grad f(W(t-1))).
TEST_CASE("PipeDream-2BW reads the weights of the iteration before") {
  const Case c = GENERATE(pipeline("pipedream-2bw", 2, 2), pipeline("pipedream-2bw", 2, 4),
                          pipeline("pipedream-2bw", 4, 4),
                          pipeline("pipedream-2bw", 2, 2, R"(, "data": 2, "tensor": 2)"));
  CHECK(error(c, [&](int /*stage*/, int micro_batch) {
          return std::max(0, micro_batch / c.micro_batches - 1);
        }) <= 1e-9);
}

/// PipeDream's replicated stages (section 3.2): a copy of a stage sees every r-th micro-batch, and
/// what stages behind it have of ranks, shared out among its r, is ahead of its first backward
/// cell.
TEST_CASE("copies of PipeDream's stages take turns and step together") {
  const std::vector<int> copies = GENERATE(std::vector{2, 1}, std::vector{1, 2});
  const int micro_batches = GENERATE(2, 4);
  const Case c = pipeline("pipedream", 2, micro_batches,
                          R"(, "replicas_per_stage": [)" + std::to_string(copies[0]) + ", " +
                              std::to_string(copies[1]) + "]");
  CHECK(error(c, [&](int stage, int micro_batch) {
          const int ranks = stage == 0 ? copies[0] + copies[1] : copies[1];
          const int warm_up = (ranks - 1) / copies[stage];
          const int own = micro_batch / copies[stage];
          return std::max(0, own - warm_up) / (micro_batches / copies[stage]);
        }) <= 1e-9);
}

/// What `stratagem execute` holds such plans to.
TEST_CASE("one device that is told a plan's versions follows the rule") {
  const Case c = GENERATE(pipeline("pipedream", 4, 1), pipeline("pipedream", 2, 4));
  const Planned plan = planned(untied_gpt(), c.strategy, c.micro_batches);
  const Planned alone = planned(untied_gpt(), "{}", c.micro_batches);
  const program::Program told = reading_as(plan.program, alone.program, alone.plan.graph());
  const History reference = by_rule(plan, [&](int stage, int micro_batch) {
    return newest(stage, c.stages, micro_batch, c.micro_batches);
  });
  CHECK(distance(history_of(alone.plan.graph(), told, c.micro_batches), reference) <= 1e-9);
}

/// Tied weights are on the first stage and the last one, each of which reads its own version.
TEST_CASE("tied weights without a flush train as on one device that is told their versions") {
  const model::Graph tied = model::gpt(
      {.layers = 4, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 2});
  const Case c = GENERATE(pipeline("pipedream", 2, 2), pipeline("pipedream-2bw", 2, 2),
                          pipeline("pipedream-vertical", 4, 1));
  CAPTURE(c.strategy);
  const Planned plan = planned(tied, c.strategy, c.micro_batches);
  const Planned alone = planned(tied, "{}", c.micro_batches);
  const program::Program told = reading_as(plan.program, alone.program, alone.plan.graph());
  CHECK(distance(history_of(plan.plan.graph(), plan.program, c.micro_batches),
                 history_of(alone.plan.graph(), told, c.micro_batches)) <= 1e-9);
}

/// What a backward cell reads is not what its forward cell read.
TEST_CASE("weights that are not stashed are noticed") {
  const Case c = pipeline("pipedream", 2, 1);
  Planned plan = planned(untied_gpt(), c.strategy, 1);
  for (program::Sequence& sequence : plan.program.sequences) {
    for (program::StoredCall& call : sequence.calls.stored()) {
      if (call.cell.pass == placement::CellPass::backward) call.versions_behind = 0;
    }
  }
  const History reference =
      by_rule(plan, [&](int stage, int micro_batch) { return newest(stage, 2, micro_batch, 1); });
  CHECK(distance(history_of(plan.plan.graph(), plan.program, 1), reference) > 1e-6);
}

TEST_CASE("weights of the wrong iteration are noticed") {
  const Case c = pipeline("pipedream", 2, 1);
  // As if all stages were the last one, or the first one.
  CHECK(error(c, [](int /*stage*/, int micro_batch) { return micro_batch; }) > 1e-6);
  CHECK(error(c, [](int /*stage*/, int micro_batch) { return std::max(0, micro_batch - 1); }) >
        1e-6);
}

TEST_CASE("iterations that overlap are timed one by one, in buffers that are all given back") {
  const Planned plan = planned(untied_gpt(), R"({"pipeline": 2, "schedule": "pipedream"})", 2);
  kernels::run_ranks(2, [&](kernels::Communicator& world) {
    Interpreter<float> rank(plan.program, plan.plan.graph(), {.micro_batches = 2}, world);
    rank.iterate();
    const std::size_t residents = rank.arena().live();
    int heard = 0, looks = 0;
    const auto clock = [&] { return std::vector{looks++ * 5_s}; };
    const Trial trial =
        execute::trial(plan.program, rank, world, 3, [&](const TimedIteration&) { ++heard; },
                       {.yardstick = nullptr, .stolen = clock});
    CHECK(heard == 3);
    CHECK(trial.iterations.size() == 3);  // not repeated, though disturbed
    Seconds stolen;
    for (const TimedIteration& iteration : trial.iterations) {
      CHECK(iteration.time > Seconds{});
      CHECK(iteration.stolen > Seconds{});
      stolen += iteration.stolen;
    }
    CHECK(stolen < 5_s);  // the rest is of those before and after
    CHECK(rank.arena().live() == residents);
    CHECK(rank.arena().peak() > residents);
    CHECK(rank.arena().peak() <= rank.arena().packing().extent);
    CHECK(rank.iteration() == 1 + 3 + 2 * 1 + 1);  // one before, one and the lag on either side
  });
}

TEST_CASE("a version that a device has no room for is noticed") {
  Planned plan = planned(untied_gpt(), R"({"pipeline": 2, "schedule": "pipedream"})", 1);
  for (program::Sequence& sequence : plan.program.sequences) {
    for (program::StoredCall& call : sequence.calls.stored()) call.versions_behind *= 2;
  }
  CHECK_THROWS_AS(history_of(plan.plan.graph(), plan.program, 1), BrokenPromise);
}

}  // namespace
}  // namespace stratagem::execute::without_flush_test

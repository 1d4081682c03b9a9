// Steps on the host that run beside the next iteration: what each iteration reads.
#include <cmath>
#include <vector>

#include "execute/stale_weights.hpp"
#include "model/builder.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute::delayed_steps_test {
namespace {

constexpr const char* delayed = R"("offload": {"of": "optimizer", "delayed_update": true})";
constexpr int iterations = 5;

/// One weight w, whose loss is w^2 on every token.
model::Graph square() {
  using namespace model;
  Builder build("square");
  build.begin_segment("only");
  const TensorId tokens = build.tensor("tokens", {1, 2}, DataType::int64, Role::input);
  const TensorId table = build.parameter("table", {1, 1}, DataType::fp32);
  const TensorId w = build.tensor("w", {1, 2, 1}, DataType::fp32, Role::activation);
  const TensorId loss = build.tensor("loss", {1, 2, 1}, DataType::fp32, Role::activation);
  build.add(OpKind::embedding, "lookup", "b s, vocabulary+ h -> b s h", {tokens, table}, {w});
  build.add(OpKind::multiply, "square", "b s h, b s h -> b s h", {w, w}, {loss});
  return std::move(build).finish(loss);
}

const model::Graph& tiny_gpt() {
  static const model::Graph graph = model::gpt({.layers = 4,
                                                .hidden = 16,
                                                .heads = 4,
                                                .sequence = 8,
                                                .vocabulary = 24,
                                                .batch = 4,
                                                .tied = false});
  return graph;
}

/// Losses of iterations that are asked for together; a parameter of rank 0 at the end.
std::vector<double> losses(const model::Graph& graph, const program::Program& program,
                           int micro_batches, std::vector<int> together = {iterations}) {
  REQUIRE(refusal(program, graph).empty());
  std::vector<double> result;
  const Settings settings{.seed = 7, .micro_batches = micro_batches};
  kernels::run_ranks(static_cast<int>(program.devices.size()), [&](kernels::Communicator& world) {
    Interpreter<double> rank(program, graph, settings, world);
    for (const int some : together) {
      const std::vector<double> of_some = rank.train(some);
      if (world.rank() == 0) result.insert(result.end(), of_some.begin(), of_some.end());
    }
  });
  return result;
}

double step_of_adam(double gradient, int step, double& mean, double& square_mean) {
  const kernels::Adam adam;
  mean = adam.beta_1 * mean + (1 - adam.beta_1) * gradient;
  square_mean = adam.beta_2 * square_mean + (1 - adam.beta_2) * gradient * gradient;
  return adam.learning_rate * (mean / (1 - std::pow(adam.beta_1, step))) /
         (std::sqrt(square_mean / (1 - std::pow(adam.beta_2, step))) + adam.epsilon);
}

}  // namespace

// By hand: iteration i computes with w(i-1), since the step on its gradients ends beside iteration
// i + 1; the first two read w(0). The gradient of w^2 is 2w, and w(i+1) = w(i) - adam(2 w(i-1)).
TEST_CASE("an iteration computes with weights that lack the step before") {
  const model::Graph graph = square();
  const Planned plan = planned(graph, std::string("{") + delayed + "}", 1);
  const std::vector<double> trained = losses(plan.plan.graph(), plan.program, 1);
  std::vector<double> w = {0};
  const Planned alone = planned(graph, "{}", 1);
  kernels::run_ranks(1, [&](kernels::Communicator& world) {
    Interpreter<double> rank(alone.program, alone.plan.graph(), {.seed = 7}, world);
    for (std::size_t id = 0; id < alone.plan.graph().tensors.size(); ++id) {
      if (alone.plan.graph().tensors[id].role == model::Role::parameter)
        w[0] = rank.parameter(static_cast<model::TensorId>(id)).data[0];
    }
  });
  double mean = 0, square_mean = 0;
  for (int i = 0; i < iterations; ++i) {
    const double read = w.at(std::max(0, i - 1));
    CHECK(close(trained[i], read * read, 1e-12));
    w.push_back(w.back() - step_of_adam(2 * read, i + 1, mean, square_mean));
  }
  CHECK(trained[0] == trained[1]);
  CHECK(std::abs(trained[2] - trained[1]) > 1e-9 * trained[1]);
}

TEST_CASE("plans that delay steps train as one device that reads weights as old") {
  const std::string more =
      GENERATE("", R"(, "data": 2, "zero": 2)", R"(, "data": 2, "zero": 1)", R"(, "pipeline": 2)",
               R"(, "data": 2, "pipeline": 2, "zero": 1, "tensor": 2)");
  CAPTURE(more);
  const int micro_batches = 2;
  const Planned plan = planned(tiny_gpt(), std::string("{") + delayed + more + "}", micro_batches);
  const Planned alone = planned(tiny_gpt(), "{}", micro_batches);
  const program::Program told = reading_as(plan.program, alone.program, alone.plan.graph());
  const std::vector<double> trained = losses(plan.plan.graph(), plan.program, micro_batches);
  CHECK(distance(trained, losses(alone.plan.graph(), told, micro_batches)) <= 1e-9);
  // It is not what one device computes that does not delay them.
  CHECK(distance(trained, losses(alone.plan.graph(), alone.program, micro_batches)) > 1e-6);
}

TEST_CASE("what is asked for later reads weights that have taken all steps") {
  const Planned plan =
      planned(tiny_gpt(), std::string("{") + delayed + R"(, "data": 2, "zero": 1})", 1);
  const Planned alone = planned(tiny_gpt(), "{}", 1);
  // One by one, nothing is delayed.
  CHECK(distance(losses(plan.plan.graph(), plan.program, 1, {1, 1, 1}),
                 losses(alone.plan.graph(), alone.program, 1, {3})) <= 1e-9);
}

}  // namespace stratagem::execute::delayed_steps_test

// Mixtures of experts: parameters, slots and FLOPs in closed form.
#include "model/zoo/mixture_of_experts.hpp"

#include "model/zoo/gpt.hpp"
#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::model::mixture_of_experts_test {

namespace {

constexpr GptConfig mixture{
    .layers = 6,
    .hidden = 48,
    .heads = 8,
    .sequence = 20,
    .vocabulary = 112,
    .batch = 3,
    .experts = {.count = 5, .per_token = 2, .capacity_factor = 1.25, .every = 2}};

Flops forward_flops(const Graph& graph, const std::string& part) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    if (op.pass == Pass::forward && op.name.find(part) != std::string::npos)
      sum += flops(graph, op);
  }
  return sum;
}

}  // namespace

TEST_CASE("every n-th MLP becomes a router of Eh and E MLPs of 8h^2 + 5h parameters") {
  const std::int64_t h = 48;
  const std::int64_t mlp = 8 * h * h + 5 * h;
  const std::int64_t dense = 12 * 6 * h * h + 13 * 6 * h + (112 + 20 + 2) * h;
  for (const std::int64_t every : {1, 2, 3, 4, 6}) {
    GptConfig config = mixture;
    config.experts.every = every;
    const std::int64_t expected = dense + 6 / every * (5 * h + (5 - 1) * mlp);
    CHECK(parameter_count(gpt(config)) == expected);
    CHECK(gpt_parameters(config) == expected);
  }
}

TEST_CASE("logits have a table of their own where embeddings are not tied") {
  GptConfig config{.layers = 2, .hidden = 48, .heads = 8, .sequence = 20, .vocabulary = 112};
  const std::int64_t tied = parameter_count(gpt(config));
  config.tied = false;
  CHECK(parameter_count(gpt(config)) == tied + 112 * 48);
  CHECK(gpt_parameters(config) == tied + 112 * 48);
}

TEST_CASE("layers n, 2n, ... are mixtures, the others have one MLP") {
  const Graph graph = gpt(mixture);
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".mlp.dispatch";
    const bool found =
        std::ranges::any_of(graph.operators, [&](const Operator& op) { return op.name == name; });
    CHECK(found == (layer % 2 == 1));
  }
}

TEST_CASE("an expert has k * tokens * capacity factor / E slots for every sample") {
  // 2 * 20 * 1.25 / 5 = 10.
  CHECK(Experts{.count = 5, .per_token = 2, .capacity_factor = 1.25}.capacity(20) == 10);
  // A slot is whole: 1 * 20 * 1 / 3 = 6.7.
  CHECK(Experts{.count = 3, .per_token = 1, .capacity_factor = 1}.capacity(20) == 7);
}

TEST_CASE("the model's work is that of k experts for every token, whatever the slots") {
  // In place of one MLP of 16bsh^2 FLOPs k of them, and a router of 2bshE; backward twice that.
  GptConfig dense = mixture;
  dense.experts.count = 0;
  const Flops without = step_flops(gpt(dense));
  const double b = 3, s = 20, h = 48, mixtures = 3;
  const Flops router{3 * mixtures * 2 * b * s * h * 5};
  const auto more_mlps = [&](double per_token) {
    return Flops{3 * mixtures * (per_token - 1) * 16 * b * s * h * h};
  };
  GptConfig config = mixture;
  for (const double factor : {1.0, 1.01, 1.25, 2.0, 4.0}) {
    INFO(factor);
    config.experts.capacity_factor = factor;
    CHECK(close(step_flops(gpt(config)), without + router + more_mlps(2), 1e-12));
  }
  // Half of the slots that tokens want: the others are dropped.
  config.experts.capacity_factor = 0.5;
  CHECK(close(step_flops(gpt(config)), without + router + more_mlps(1), 1e-12));
  // 2bshE
  CHECK(forward_flops(gpt(mixture), "layers.1.mlp.router") == Flops{2.0 * 3 * 20 * 48 * 5});
}

TEST_CASE("a slot that is there because slots are whole is no work of the model") {
  // 20 tokens, one expert each, 3 experts with ceil(20 / 3) = 7 slots: 21.
  const Experts experts{.count = 3, .per_token = 1, .capacity_factor = 1};
  CHECK(close(experts.filled(20), 20.0 / 21, 1e-15));
}

TEST_CASE(
    "who chooses a token's experts sees all of them: a dispatch cannot be divided along them") {
  const Graph graph = gpt(mixture);
  const auto divides = [&](const std::string& name) {
    const auto op = std::ranges::find(graph.operators, "layers.1.mlp." + name, &Operator::name);
    return may_split(*op->annotation, "expert");
  };
  CHECK_FALSE(divides("dispatch"));
  CHECK(divides("fc1"));
  CHECK(divides("combine"));  // leaves partial sums
}

TEST_CASE("gradients reach router and experts") {
  const Graph graph = gpt(mixture);
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    INFO(graph.tensors[id].name);
    if (graph.tensors[id].role == Role::parameter) CHECK(graph.gradient_of[id] >= 0);
  }
}

}  // namespace stratagem::model::mixture_of_experts_test

// Mixtures of experts: parameters, slots and FLOPs in closed form.
#include "model/zoo/mixture_of_experts.hpp"

#include "model/zoo/gpt.hpp"
#include "tests/catch.hpp"

namespace stratagem::model {

namespace {

constexpr GptConfig mixture{.layers = 6,
                            .hidden = 48,
                            .heads = 8,
                            .sequence = 20,
                            .vocabulary = 112,
                            .batch = 3,
                            .experts = 5,
                            .experts_per_token = 2,
                            .capacity_factor = 1.25,
                            .moe_every = 2};

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
    config.moe_every = every;
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

TEST_CASE("experts compute k * capacity factor times what one MLP would, whatever their number") {
  GptConfig dense = mixture;
  dense.experts = 0;
  const Graph with = gpt(mixture);
  const Graph without = gpt(dense);
  for (const std::string part : {"layers.1.mlp.fc1", "layers.1.mlp.fc2"})
    CHECK(close(forward_flops(with, part), 2 * 1.25 * forward_flops(without, part), 1e-15));
  // 2bshE
  CHECK(forward_flops(with, "layers.1.mlp.router") == Flops{2.0 * 3 * 20 * 48 * 5});
}

TEST_CASE("gradients reach router and experts") {
  const Graph graph = gpt(mixture);
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    INFO(graph.tensors[id].name);
    if (graph.tensors[id].role == Role::parameter) CHECK(graph.gradient_of[id] >= 0);
  }
}

}  // namespace stratagem::model

// Llama graphs against published sizes and closed forms of parameters, FLOPs and operators.
#include "model/zoo/llama.hpp"

#include <set>

#include "tests/catch.hpp"

namespace stratagem::model::llama_test {

namespace {

struct Published {
  std::string name;
  LlamaConfig config;
  std::int64_t parameters;  ///< of the released checkpoint
};

/// Sizes: Touvron et al., arXiv:2307.09288, and the Llama Team, arXiv:2407.21783, table 3; numbers
/// of parameters: sums over the tensors of the checkpoints, as their pages on Hugging Face have
/// them.
const std::vector<Published> table = {
    {"Llama 2 7B", {32, 4096, 32, 32, 11008, 4096, 32000}, 6'738'415'616},
    {"Llama 3 8B", {32, 4096, 32, 8, 14336, 8192, 128256}, 8'030'261'248},
    {"Llama 3 70B", {80, 8192, 64, 8, 28672, 8192, 128256}, 70'553'706'496},
    {"Llama 3.1 405B", {126, 16384, 128, 8, 53248, 8192, 128256}, 405'853'388'800}};

Flops total(const Graph& graph, const std::set<Pass>& passes) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    if (passes.count(op.pass) > 0) sum += flops(graph, op);
  }
  return sum;
}

}  // namespace

TEST_CASE("Llama models have as many parameters as the released checkpoints") {
  for (const Published& p : table) {
    INFO(p.name);
    CHECK(llama_parameters(p.config) == p.parameters);
    CHECK(parameter_count(llama(p.config)) == p.parameters);
    LlamaConfig other = p.config;  // how it is computed changes no parameter
    other.fused_attention = other.fused_swiglu = false;
    other.fused_loss = true;
    CHECK(parameter_count(llama(other)) == p.parameters);
    other.tied = true;
    CHECK(parameter_count(llama(other)) == p.parameters - p.config.vocabulary * p.config.hidden);
    CHECK(llama_parameters(other) == parameter_count(llama(other)));
  }
}

TEST_CASE("matrix products of a step are six times weights and tokens, and 12bs^2h a layer") {
  // Forward 2 FLOPs for every weight of a matrix and token, and 4bs^2h for scores and their product
  // with the values, whose number of heads is that of the queries; backward twice as many.
  // Matrices: all parameters but norms and the table that is looked up.
  for (const Published& p : table) {
    for (const bool fused : {true, false}) {
      INFO(p.name << (fused ? ", fused" : ", in parts"));
      LlamaConfig c = p.config;
      c.batch = 2;
      c.fused_attention = c.fused_swiglu = fused;
      const std::int64_t matrices =
          p.parameters - (2 * c.layers + 1) * c.hidden - c.vocabulary * c.hidden;
      const double tokens = static_cast<double>(c.batch * c.sequence);
      const double attention = 4 * tokens * static_cast<double>(c.sequence * c.hidden * c.layers);
      const Flops forward{2 * tokens * static_cast<double>(matrices) + attention};
      const Graph graph = llama(c);
      CHECK(close(total(graph, {Pass::forward}), forward, 1e-12));
      CHECK(close(step_flops(graph), 3 * forward, 1e-12));
    }
  }
}

TEST_CASE("a Llama has one segment for embeddings, one per layer and one for the head") {
  const Graph graph = llama(table[0].config);
  REQUIRE(graph.segments.size() == 34);
  for (std::size_t layer = 1; layer <= 32; ++layer)
    CHECK(graph.segments[layer].optimizer.size() == 6);  // 4 matrices, 2 norms
  CHECK(graph.segments.front().optimizer.size() == 1);
  CHECK(graph.segments.back().optimizer.size() == 2);  // the norm and the table for logits
}

}  // namespace stratagem::model::llama_test

// Llama graphs against published sizes and closed forms of parameters, FLOPs and operators.
#include "model/zoo/llama.hpp"

#include <cmath>
#include <set>

#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

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
    other.fused.attention = other.fused.swiglu = false;
    other.fused.loss = true;
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
      c.fused.attention = c.fused.swiglu = fused;
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

/// Jiang et al., Mixtral of Experts, arXiv:2401.04088, table 1.
LlamaConfig mixtral_8x7b() {
  LlamaConfig c{32, 4096, 32, 8, 14336, 32768, 32000};
  c.experts = {.count = 8, .per_token = 2};
  return c;
}

TEST_CASE("Mixtral 8x7B has 47B parameters, of which a token uses 13B") {
  // Per layer W_q, W_o of h x h, W_k, W_v of h x 1024, two norms, a router of 8h, three matrices of
  // h x 14336 for each of 8 experts; two tables and a norm.
  const std::int64_t h = 4096, expert = 3 * h * 14336;
  const std::int64_t others = 32 * (2 * h * h + 2 * h * 1024 + 2 * h + 8 * h) + 2 * 32000 * h + h;
  const std::int64_t all = others + 32 * 8 * expert, active = others + 32 * 2 * expert;
  CHECK(all == 46'702'792'704);  // of the released checkpoint
  CHECK(std::round(static_cast<double>(all) / 1e9) == 47);
  CHECK(std::round(static_cast<double>(active) / 1e9) == 13);
  const LlamaConfig mixtral = mixtral_8x7b();
  CHECK(llama_parameters(mixtral) == all);
  LlamaConfig other = mixtral;
  other.fused.attention = other.fused.swiglu = false;
  CHECK(parameter_count(llama(mixtral)) == all);
  CHECK(parameter_count(llama(other)) == all);
  LlamaConfig chosen =
      mixtral;  // a Llama of the experts that a token uses, but for 6 routers' rows
  chosen.experts.count = 2;
  CHECK(llama_parameters(chosen) == active - 32 * 6 * h);
}

TEST_CASE("matrix products of Mixtral are six times active weights and tokens, and attention") {
  // As above, of the matrices that a token passes: all but tables looked up, norms, and six
  // experts.
  LlamaConfig c = mixtral_8x7b();
  c.batch = 2;
  c.sequence = 4096;
  const double tokens = 2 * 4096, h = 4096, k = 1024, expert = 3 * h * 14336;
  const double matrices = 32 * (2 * h * h + 2 * h * k + 8 * h + 2 * expert) + 32000 * h;
  const Flops step{6 * tokens * matrices + 12 * tokens * 4096 * h * 32};
  for (const bool fused : {true, false}) {
    c.fused.attention = c.fused.swiglu = fused;
    for (const double factor : {1.0, 1.25, 8.0}) {  // empty slots are no work of the model
      c.experts.capacity_factor = factor;
      CHECK(close(step_flops(llama(c)), step, 1e-12));
    }
  }
}

TEST_CASE("every n-th layer of a Llama is a mixture, the others have one MLP") {
  LlamaConfig c{6, 48, 8, 4, 96, 20, 112};
  const std::int64_t dense = parameter_count(llama(c));
  for (const std::int64_t every : {1, 2, 3, 4}) {
    c.experts = {.count = 5, .per_token = 2, .every = every};
    const std::int64_t expected = dense + 6 / every * (5 * 48 + 4 * 3 * 48 * 96);
    CHECK(parameter_count(llama(c)) == expected);
    CHECK(llama_parameters(c) == expected);
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

// Latent attention and DeepSeek's mixtures: parameters and FLOPs in closed form.
#include "model/zoo/latent_attention.hpp"

#include <algorithm>

#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::latent_attention_test {
namespace {

constexpr std::int64_t h = 48, heads = 6, width = 10, rotary = 4, values = 8, kr = 12, qr = 20;

/// Two layers with an MLP, three mixtures of 5 experts and one that all tokens pass twice as wide.
LlamaConfig small() {
  LlamaConfig c{.layers = 5,
                .hidden = h,
                .heads = heads,
                .kv_heads = heads,
                .intermediate = 64,
                .sequence = 20,
                .vocabulary = 112,
                .batch = 3};
  c.variant.head_width = width;
  c.variant.latent = {.key_rank = kr, .query_rank = qr, .rotary = rotary, .values = values};
  c.experts = {.count = 5,
               .per_token = 2,
               .plain = 2,
               .width = 16,
               .shared = 2,
               .router = Router::sigmoid,
               .router_bias = true};
  return c;
}

/// Of a layer's attention: two matrices for queries, two for keys and values, one after the values.
constexpr std::int64_t matrices = h * qr + qr * heads * (width + rotary) + h * (kr + rotary) +
                                  kr * heads * (width + values) + heads * values * h;
constexpr std::int64_t expert = 3 * h * 16, mlp = 3 * h * 64, table = 112 * h;

std::int64_t of_kind(const Graph& graph, OpKind kind) {
  return std::ranges::count_if(graph.operators, [&](const Operator& op) {
    return op.kind == kind && op.pass == Pass::forward;
  });
}

TEST_CASE("a latent attention and shared experts have the parameters of their matrices") {
  const std::int64_t norms = 2 * h + qr + kr, mixture = 5 * h + 5 + (5 + 2) * expert;
  const std::int64_t all = 5 * (matrices + norms) + 2 * mlp + 3 * mixture + 2 * table + h;
  LlamaConfig c = small();
  CHECK(parameter_count(llama(c)) == all);
  c.fused.attention = false;
  CHECK(parameter_count(llama(c)) == all);
  c.experts.router_bias = false;
  CHECK(parameter_count(llama(c)) == all - 3 * 5);
  c.experts.shared = 0;
  CHECK(parameter_count(llama(c)) == all - 3 * (5 + 2 * expert));
  c.variant.latent.query_rank = 0;  // one matrix for queries, and a norm less
  CHECK(parameter_count(llama(c)) ==
        all - 3 * (5 + 2 * expert) -
            5 * (h * qr + qr + qr * heads * (width + rotary) - h * heads * (width + rotary)));
}

TEST_CASE("its products are six times weights and tokens, and scores and values of their widths") {
  // A token passes 2 of 5 experts and both shared ones. Scores sum over width + rotary elements,
  // their product with the values over the other token.
  const double tokens = 3 * 20;
  const double passed = 5 * matrices + 2 * mlp + 3 * (5 * h + (2 + 2) * expert) + table;
  const double pairs = tokens * 20 * heads * (width + rotary + values);
  for (const bool fused : {true, false}) {
    LlamaConfig c = small();
    c.fused.attention = fused;
    CHECK(close(step_flops(llama(c)), Flops{6 * tokens * passed + 6 * 5 * pairs}, 1e-12));
  }
}

TEST_CASE("the first layers have an MLP, and routers weigh by the function that is asked for") {
  LlamaConfig c = small();
  const Graph graph = llama(c);
  CHECK(of_kind(graph, OpKind::dispatch) == 3);
  CHECK(of_kind(graph, OpKind::sigmoid) == 3);
  CHECK(of_kind(graph, OpKind::softmax) == 0);
  c.experts.router = Router::softmax;
  CHECK(of_kind(llama(c), OpKind::softmax) == 3);
  const auto first = std::ranges::find(graph.operators, OpKind::dispatch, &Operator::kind);
  CHECK(first->name == "layers.2.mlp.dispatch");
}

TEST_CASE("a window leaves so many keys for each query, but in every n-th layer") {
  // Four products of width 8 for each of 6 heads are 4 x 48 FLOPs a pair, forward; thrice that.
  LlamaConfig c{.layers = 4,
                .hidden = h,
                .heads = heads,
                .kv_heads = 2,
                .intermediate = 64,
                .sequence = 20,
                .vocabulary = 112,
                .batch = 3};
  const Graph all = llama(c);
  c.variant.sight.window = 7;
  c.variant.sight.full_every = 2;
  const double left_out = 3 * 20 * (20 - 7);
  CHECK(close(step_flops(all) - step_flops(llama(c)), Flops{2 * 3 * 4.0 * h * left_out}, 1e-12));
  c.variant.sight.window = 20;
  CHECK(step_flops(llama(c)) == step_flops(all));
  c.variant.sight.sinks = true;
  CHECK(parameter_count(llama(c)) == parameter_count(all) + 4 * heads);
}

}  // namespace
}  // namespace stratagem::model::latent_attention_test

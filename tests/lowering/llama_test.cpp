// What a Llama layer keeps and communicates under tensor, sequence and context parallelism, by
// hand.
#include "model/zoo/llama.hpp"

#include <map>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::llama_test {

using placement::CellPass;
using program::Category;
using program::Collective;
using program::Program;

namespace {

/// 12 samples of 20 tokens, heads of 8, two queries to a key.
constexpr model::LlamaConfig small_llama{.layers = 4,
                                         .hidden = 64,
                                         .heads = 8,
                                         .kv_heads = 4,
                                         .intermediate = 168,
                                         .sequence = 20,
                                         .vocabulary = 112,
                                         .batch = 12};
constexpr double tokens = 240, h = 64, k = 32, f = 168, heads = 8;

std::string strategy(int tensor, bool sequence, const std::string& recompute = "none") {
  return R"({"tensor": )" + std::to_string(tensor) + R"(, "sequence_parallel": )" +
         (sequence ? "true" : "false") + R"(, "recompute": ")" + recompute + "\"}";
}

Bytes kept(const model::LlamaConfig& config, const std::string& plan, Category category) {
  const model::Graph graph = model::llama(config);
  return left_by(block_of(lowered(graph, plan), 1, CellPass::forward), category);
}

}  // namespace

TEST_CASE(
    "a layer keeps 2sb(4h + (2h + 2k + 3f)/t) bytes, with sequence parallelism all of it / t") {
  // bf16. Whole on every tensor rank: the layer's input, what both norms return, the state between
  // attention and MLP. Divided: queries and attention's result, h each, keys and values, k each,
  // both halves of the gated projection, 2f, and their product, f.
  for (const int t : {1, 2, 4}) {
    for (const bool sequence : {false, true}) {
      INFO("t = " << t << ", sequence " << sequence);
      const double whole = 4 * h / (sequence ? t : 1);
      const double divided = (2 * h + 2 * k + 3 * f) / t;
      CHECK(close(kept(small_llama, strategy(t, sequence), Category::activations),
                  Bytes{2 * tokens * (whole + divided)}, 1e-14));
      // Two norms with a number in fp32 for every token, and one for every token and head.
      CHECK(close(kept(small_llama, strategy(t, sequence), Category::statistics),
                  Bytes{4 * tokens * (2.0 / (sequence ? t : 1) + heads / t)}, 1e-14));
    }
  }
}

TEST_CASE(
    "a mixture keeps every slot's row, gate, factor, product and result, and where tokens went") {
  // 4 experts with ceil(2 * 20 * 1.5 / 4) = 15 slots a sample: three for every token, in place of
  // the token's own 3f; a probability for every expert, the numbers of two slots in 8 bytes.
  model::LlamaConfig c = small_llama;
  c.experts = {.count = 4, .per_token = 2, .capacity_factor = 1.5};
  for (const int t : {1, 2}) {
    const double layer = 4 * h + (2 * h + 2 * k) / t, slots = 3 * (2 * h + 3 * f / t);
    CHECK(close(kept(c, strategy(t, false), Category::activations),
                Bytes{2 * tokens * (layer + 4 + slots) + 8 * tokens * 2}, 1e-14));
    CHECK(kept(c, strategy(t, false, "full"), Category::activations) == 0_B);
    CHECK(kept(c, strategy(t, false, "full"), Category::checkpoints) == Bytes{2 * tokens * h});
  }
}

TEST_CASE("what is not fused keeps more: silu and its product, copies of keys and values, scores") {
  const Bytes fused = kept(small_llama, "{}", Category::activations);
  model::LlamaConfig c = small_llama;
  c.fused.swiglu = false;  // gate, silu(gate), up and the product: 4f
  CHECK(kept(c, "{}", Category::activations) - fused == Bytes{2 * tokens * f});
  c = small_llama;
  c.variant.repeats_keys = true;  // copies as wide as the queries in place of keys and values
  CHECK(kept(c, "{}", Category::activations) - fused == Bytes{2 * tokens * (2 * h - 2 * k)});
  c = small_llama;
  c.fused.attention = false;  // probabilities of every head and pair of tokens
  CHECK(kept(c, "{}", Category::activations) - fused == Bytes{2 * tokens * heads * 20});
}

TEST_CASE(
    "full recomputation keeps a layer's input, 2sbh, selective all but rows' sums of attention") {
  // A fused core has no scores to save: its result is the projection's input and stays, as where
  // frameworks run a core again; its operands are checkpoints, and the sums are computed again.
  for (const int t : {1, 2, 4}) {
    CHECK(kept(small_llama, strategy(t, true, "full"), Category::checkpoints) ==
          Bytes{2 * tokens * h / t});
    CHECK(kept(small_llama, strategy(t, true, "full"), Category::activations) == 0_B);
    const std::string selective = strategy(t, true, "selective");
    CHECK(kept(small_llama, selective, Category::checkpoints) ==
          Bytes{2 * tokens * (h + 2 * k) / t});
    CHECK(close(kept(small_llama, selective, Category::activations),
                Bytes{2 * tokens * (5 * h + 3 * f) / t}, 1e-14));
    CHECK(kept(small_llama, selective, Category::statistics) == Bytes{4 * tokens * 2 / t});
  }
}

TEST_CASE(
    "the head keeps 4sbV of exponentials in fp32, or the logits' gradient, 2sbV, where it is "
    "fused") {
  model::LlamaConfig c = small_llama;
  for (const int t : {1, 2, 4}) {
    const auto head = [&] {
      const model::Graph graph = model::llama(c);
      const Program program = lowered(graph, strategy(t, false));
      return left_by(block_of(program, 5, CellPass::forward), Category::activations);
    };
    const Bytes norm{2 * tokens * h};
    c.fused.loss = false;
    CHECK(head() == norm + Bytes{4 * tokens * 112 / t});
    c.fused.loss = true;
    CHECK(head() == norm + Bytes{2 * tokens * 112 / t});
  }
}

TEST_CASE("tensor ranks of a layer sum its two results forward and two gradients backward") {
  const model::Graph graph = model::llama(small_llama);
  for (const int t : {2, 4}) {
    const Program program = lowered(graph, strategy(t, false));
    for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
      const std::vector<Collective> found = collectives(block_of(program, 1, pass));
      CHECK(found.size() == 2);
      for (const Collective& one : found) {
        CHECK(one.kind == cost::CollectiveKind::all_reduce);
        CHECK(one.payload == Bytes{2 * tokens * h});
      }
    }
  }
}

TEST_CASE("a layer's two norms are RMS norms, forward and backward") {
  const Program program = lowered(model::llama(small_llama), "{}");
  for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
    std::map<cost::KernelKind, int> found;
    for (const program::Task& task : block_of(program, 1, pass).tasks) {
      if (const auto* kernel = std::get_if<cost::Kernel>(&task.work)) ++found[kernel->kind];
    }
    CHECK(found[cost::KernelKind::rms_norm] == 2);
    CHECK(found[cost::KernelKind::norm] == 0);
  }
}

TEST_CASE("context ranks gather keys and values, of their own heads alone") {
  const model::Graph graph = model::llama(small_llama);
  const Program program = lowered(graph, R"({"context": 4})");
  const std::vector<Collective> found = collectives(block_of(program, 1, CellPass::forward));
  CHECK(found.size() == 2);
  for (const Collective& one : found) {
    CHECK(one.kind == cost::CollectiveKind::all_gather);
    CHECK(one.payload == Bytes{2 * tokens * k});
  }
}

TEST_CASE("more tensor ranks than keys are refused") {
  const model::Graph graph = model::llama(small_llama);
  CHECK_THAT(refusal([&] { lowered(graph, R"({"tensor": 8})"); }),
             ContainsSubstring("to divide into 8 equal parts, found 4"));
}

}  // namespace stratagem::lowering::llama_test

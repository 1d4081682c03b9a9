// Attention in a ring: what its messages hide behind, against closed forms, with kernels and a
// network that take what a test says, and what its parts have of the whole.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/zoo/bert.hpp"
#include "model/zoo/gpt.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim::in_ring {
namespace {

using cost::KernelKind;
using lowering::block_of;
using placement::CellPass;

constexpr int layer_count = 4;
constexpr Bytes activation = 12.0 * 20 * 48 * 2_B;  // b*s*h of lowering::small_gpt in fp16
constexpr Bytes log_sums = 12.0 * 20 * 8 * 4_B;     // a number for each token of each head

model::Graph fused_gpt() {
  model::GptConfig config = lowering::small_gpt;
  config.fused_attention = true;
  return model::gpt(config);
}

program::Program lowered(int ranks, const std::string& exchange, const std::string& more = "") {
  return UnitPipeline::lowered("{\"context\": " + std::to_string(ranks) +
                                   ", \"context_exchange\": \"" + exchange + "\"" + more + "}",
                               fused_gpt(), 1);
}

std::vector<cost::Kernel> kernels(const program::Block& block, KernelKind kind) {
  std::vector<cost::Kernel> found;
  for (const program::Task& task : block.tasks) {
    const auto* kernel = std::get_if<cost::Kernel>(&task.work);
    if (kernel != nullptr && kernel->kind == kind) found.push_back(*kernel);
  }
  return found;
}

Flops flops(const program::Block& block, KernelKind kind) {
  Flops sum;
  for (const cost::Kernel& kernel : kernels(block, kind)) sum += kernel.flops;
  return sum;
}

/// Payloads of the messages of a layer's pass.
std::vector<Bytes> messages(const program::Program& program, CellPass pass) {
  std::vector<Bytes> payloads;
  for (const program::Collective& one : lowering::collectives(block_of(program, 1, pass))) {
    if (one.kind == cost::CollectiveKind::ring_messages) payloads.push_back(one.payload);
  }
  return payloads;
}

/// Units of an iteration where only messages and the attention of one pass take time: that of a
/// layer `attention` units, b*s*h on a link `message` units.
double makespan(const program::Program& program, KernelKind pass, double attention,
                double message) {
  const BytesPerSecond bandwidth = activation / Seconds{message * 1e-12 * unit};
  const auto devices = static_cast<int>(program.devices.size());
  const Folding folding =
      fold(program, instant_cluster(devices, bandwidth), ideal_network(), false);
  const CellPass cells = pass == KernelKind::attention ? CellPass::forward : CellPass::backward;
  const Flops whole = flops(block_of(program, 1, cells), pass);
  const Prices prices = price(program, [&](const program::Task& task) {
    const auto* kernel = std::get_if<cost::Kernel>(&task.work);
    if (kernel == nullptr || kernel->kind != pass) return Price{};
    return Price{.device = {std::llround(attention * (kernel->flops / whole) * unit)}};
  });
  const Timeline timeline = run(program, folding, prices, 1);
  return static_cast<double>(timeline.iteration_ends.front().picoseconds) / unit;
}

/// What a ring saves of what gathers and scatters of the whole make one wait.
double saved(int ranks, KernelKind pass, double attention, double message) {
  return makespan(lowered(ranks, "gather"), pass, attention, message) -
         makespan(lowered(ranks, "ring"), pass, attention, message);
}

/// Units, but for picoseconds that were rounded.
bool equal(double a, double b) { return std::abs(a - b) < 1e-3; }

struct Case {
  int ranks;
  double attention, message;  ///< of a layer's pass; of b*s*h
};
const std::vector<Case> cases = {{2, 8, 1}, {2, 2, 4}, {5, 20, 2}, {5, 10, 3}, {5, 2, 8}};

/// A layer's backward pass: messages of 1, 2, ..., 2, 1 times the keys and values of a rank, which
/// take m units, each beside a part.
double backward_of(int n, double part, double m) {
  return 2 * std::max(part, m) + (n - 2) * std::max(part, 2 * m);
}

}  // namespace

TEST_CASE("a ring hides all messages of a forward pass behind attention but what is slower") {
  // Whole: two gathers of (n-1)/n, then attention. In a ring n - 1 messages of 2/n beside n parts,
  // of which the first waits for none. The backward pass, which takes no time itself, has messages
  // of as many bytes in both.
  for (const auto& [n, t, a] : cases) {
    CAPTURE(n, t, a);
    const double m = 2 * a / n;
    const double whole = (n - 1) * m + t;
    const double ring = std::max(t, (n - 1) * m + t / n);
    CHECK(equal(saved(n, KernelKind::attention, t, a), layer_count * (whole - ring)));
  }
}

TEST_CASE("a part of a backward pass runs beside one message, which may bring gradients, too") {
  for (const auto& [n, t, a] : cases) {
    CAPTURE(n, t, a);
    const double m = 2 * a / n;
    const double whole = 2 * (n - 1) * m + t;
    CHECK(equal(saved(n, KernelKind::attention_backward, t, a),
                layer_count * (whole - backward_of(n, t / n, m))));
  }
}

TEST_CASE("a ring carries the bytes of the gathers, and computes the FLOPs of the whole") {
  for (const int n : {2, 5}) {
    const program::Program ring = lowered(n, "ring");
    const program::Program whole = lowered(n, "gather");
    const Bytes share = 2 * activation / n;
    CHECK(messages(ring, CellPass::forward) == std::vector<Bytes>(n - 1, share));
    std::vector<Bytes> backward(n, 2 * share);
    backward.front() = backward.back() = share;
    CHECK(messages(ring, CellPass::backward) == backward);
    CHECK(lowering::collectives(block_of(ring, 1, CellPass::forward)).size() == n - 1U);
    CHECK(lowering::collectives(block_of(ring, 1, CellPass::backward)).size() == std::size_t(n));
    for (const auto& [pass, kind] :
         {std::pair{CellPass::forward, KernelKind::attention},
          std::pair{CellPass::backward, KernelKind::attention_backward}}) {
      const Flops of_ring = flops(block_of(ring, 1, pass), kind);
      CHECK(std::abs(of_ring / flops(block_of(whole, 1, pass), kind) - 1) < 1e-12);
    }
  }
}

TEST_CASE("the part on own keys is causal, in all others each query sees half of the keys") {
  // 20 tokens on 5 ranks: 4 queries of 12 samples' 8 heads, of which the last forward part and the
  // first backward one see 2 keys.
  const program::Program ring = lowered(5, "ring");
  std::vector<std::int64_t> keys, seen_by_all;
  for (const auto& kernel : kernels(block_of(ring, 1, CellPass::forward), KernelKind::attention)) {
    CHECK(kernel.m == 4);
    CHECK(kernel.batch == 12 * 8);
    CHECK(kernel.piece.of == 2);
    keys.push_back(kernel.n);
    seen_by_all.push_back(kernel.seen.all ? 1 : 0);
  }
  CHECK(keys == std::vector<std::int64_t>{4, 2, 2, 2, 2});
  CHECK(seen_by_all == std::vector<std::int64_t>{0, 1, 1, 1, 1});
  keys.clear();
  for (const auto& kernel :
       kernels(block_of(ring, 1, CellPass::backward), KernelKind::attention_backward)) {
    CHECK(kernel.piece.of == 1);
    keys.push_back(kernel.n);
  }
  CHECK(keys == std::vector<std::int64_t>{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4});
}

TEST_CASE("parts without a mask see all keys that have come") {
  const model::Graph graph = model::bert({.layers = 1,
                                          .hidden = 48,
                                          .heads = 8,
                                          .sequence = 24,
                                          .vocabulary = 112,
                                          .batch = 12,
                                          .fused_attention = true,
                                          .next_sentence = false});
  const program::Program ring =
      lowering::lowered(graph, R"({"context": 4, "context_exchange": "ring"})");
  for (const auto& kernel : kernels(block_of(ring, 1, CellPass::forward), KernelKind::attention)) {
    CHECK(kernel.n == 6);
    CHECK(kernel.seen.all);
  }
}

TEST_CASE("a forward pass holds the results of all parts, a backward pass two buffers") {
  const auto bytes = [](const program::Program& program, CellPass pass) {
    Bytes sum;
    for (const program::Slot& slot : block_of(program, 1, pass).slots) sum += slot.bytes;
    return sum;
  };
  for (const int n : {2, 5}) {
    const program::Program ring = lowered(n, "ring");
    const program::Program whole = lowered(n, "gather");
    CHECK(bytes(ring, CellPass::forward) - bytes(whole, CellPass::forward) ==
          activation + log_sums);
    // Keys, values and their gradients: twice a share each in place of all n. What a part gives:
    // gradients of queries, keys and values.
    CHECK(std::abs((bytes(ring, CellPass::backward) - bytes(whole, CellPass::backward)) /
                       (activation / n) -
                   (4.0 * (2 - n) + 3)) < 1e-9);
  }
}

TEST_CASE("sums read what all parts give, and masked parts give gradients of half of the keys") {
  // As Transformer Engine has them: results are scaled, then added (a read of each and of the
  // sum, and a write), sums of exponentials likewise, and read for every scale.
  const auto moved = [](const program::Program& program, CellPass pass) {
    std::pair<Bytes, int> sum;
    for (const program::Task& task : block_of(program, 1, pass).tasks) {
      if (task.name.find(", sum of") == std::string::npos) continue;
      sum.first += std::get<cost::Kernel>(task.work).traffic;
      sum.second += std::get<cost::Kernel>(task.work).launches;
    }
    return sum;
  };
  for (const int n : {2, 5}) {
    const program::Program ring = lowered(n, "ring");
    const auto [forward, launched] = moved(ring, CellPass::forward);
    CHECK(forward ==
          (2 + 3 * (n - 1)) * (activation / n) + (2 + 3 * (n - 1) + 2 * n) * (log_sums / n));
    CHECK(launched == n + n);
    // The first is copied. Queries of a rank and half of its keys and values; all, of the last.
    const Bytes masked = activation / n + activation / n, whole = masked + activation / n;
    const auto [backward, added] = moved(ring, CellPass::backward);
    CHECK(std::abs(backward / (2 * masked + 3 * (n - 2) * masked + 3 * whole) - 1) < 1e-12);
    CHECK(added == 3 * n);
  }
}

TEST_CASE("what runs again has messages of its own, and so has the backward pass behind it") {
  for (const int n : {2, 5}) {
    const program::Program ring = lowered(n, "ring", R"(, "recompute": "full")");
    const std::vector<Bytes> all = messages(ring, CellPass::backward);
    CHECK(all.size() == n - 1U + n);
    CHECK(all[n - 2] == 2 * activation / n);
    CHECK(kernels(block_of(ring, 1, CellPass::backward), KernelKind::attention).size() ==
          std::size_t(n));
  }
}

TEST_CASE("ranks that exchange heads pass their share of these around the ring") {
  const program::Program ring = lowered(2, "ring", R"(, "ulysses": 2, "tensor": 2)");
  CHECK(messages(ring, CellPass::forward) == std::vector<Bytes>{2 * activation / 8});
  // Queries that were exchanged for their heads are kept so, whatever brings the keys.
  const auto exchanges = [](const program::Program& program) {
    int count = 0;
    for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
      for (const program::Collective& one : lowering::collectives(block_of(program, 1, pass)))
        count += one.kind == cost::CollectiveKind::all_to_all ? 1 : 0;
    }
    return count;
  };
  CHECK(exchanges(ring) == exchanges(lowered(2, "gather", R"(, "ulysses": 2, "tensor": 2)")));
}

TEST_CASE("rings that cannot be are refused, and say why") {
  const auto refusal = [](const std::string& strategy, const model::Graph& graph) {
    try {
      static_cast<void>(UnitPipeline::lowered(strategy, graph, 1));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string ring = R"({"context": 4, "context_exchange": "ring"})";
  CHECK_THAT(refusal(ring, fused_gpt()),
             ContainsSubstring("/strategy/context_exchange: expected tokens that divide into two"));
  CHECK_THAT(refusal(R"({"context_exchange": "ring"})", fused_gpt()),
             ContainsSubstring("several context ranks"));
  CHECK_THAT(
      refusal(R"({"context": 2, "context_exchange": "ring"})", model::gpt(lowering::small_gpt)),
      ContainsSubstring("a model with fused attention"));
  model::GptConfig config = lowering::small_gpt;
  config.fused_attention = true;
  config.variant.sight.window = 4;
  CHECK_THAT(refusal(R"({"context": 2, "context_exchange": "ring"})", model::gpt(config)),
             ContainsSubstring("with a window"));
  config.variant.sight = {.sinks = true};
  CHECK_THAT(refusal(R"({"context": 2, "context_exchange": "ring"})", model::gpt(config)),
             ContainsSubstring("with sinks"));
}

}  // namespace stratagem::sim::in_ring

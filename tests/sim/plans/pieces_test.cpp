// Collectives that a stack cuts in pieces together with a product: what that saves, against closed
// forms, with kernels and a network that take what a test says.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim::in_pieces {
namespace {

using By = cost::GatherInPieces::By;

constexpr int layer_count = 4;
constexpr Bytes activation = 12.0 * 20 * 48 * 2_B;  // b*s*h of lowering::small_gpt in fp16

const cost::GatherInPieces ring_forward{false, By::ring_exchange};
const cost::GatherInPieces ring_backward{true, By::ring_exchange};
const cost::GatherInPieces own_forward{false, By::own_share_first};

/// Products after a gather in the forward pass, two of each layer and the logits; after one in the
/// backward pass; and before a reduce-scatter in the forward pass, two of each layer.
const std::set<std::string> columns = {"attention.qkv", "mlp.fc1", "logits"};
const std::set<std::string> columns_backward = {"attention.projection.B", "mlp.fc2.B"};
const std::set<std::string> rows = {"attention.projection", "mlp.fc2"};
constexpr int column_count = 2 * layer_count + 1;
constexpr int row_count = 2 * layer_count;

program::Program lowered(int ranks, const std::vector<cost::Rule>& rules) {
  return UnitPipeline::lowered(
      R"({"sequence_parallel": true, "tensor": )" + std::to_string(ranks) + "}",
      model::gpt(lowering::small_gpt), 1, {.rules = rules});
}

/// The part of its product that a task computes, by the FLOPs of both.
double share_of(const program::Program& program, const std::string& product, Flops flops) {
  Flops whole;
  for (const program::Block& block : program.blocks) {
    Flops here;
    for (const program::Task& task : block.tasks) {
      if (task.name.substr(0, task.name.find(',')) == product)
        here += std::get<cost::Kernel>(task.work).flops;
    }
    whole = std::max(whole, here);
  }
  return flops / whole;
}

/// Units of an iteration where only the named products, `product` units each, and messages take
/// time: an activation takes `message` units on a link.
double makespan(int ranks, const std::vector<cost::Rule>& rules,
                const std::set<std::string>& products, double product, double message,
                const cost::CollectiveConstants& network = ideal_network()) {
  const program::Program program = lowered(ranks, rules);
  const BytesPerSecond bandwidth = activation / Seconds{message * 1e-12 * unit};
  const Folding folding = fold(program, instant_cluster(ranks, bandwidth), network, false);
  const Prices prices = price(program, [&](const program::Task& task) {
    const std::string name = task.name.substr(0, task.name.find(','));
    if (!products.contains(name)) return Price{};
    const double share = share_of(program, name, std::get<cost::Kernel>(task.work).flops);
    return Price{.device = {std::llround(product * share * unit)}};
  });
  const Timeline timeline = run(program, folding, prices, 1);
  return static_cast<double>(timeline.iteration_ends.front().picoseconds) / unit;
}

/// Units, but for picoseconds that were rounded.
bool equal(double a, double b) { return std::abs(a - b) < 1e-3; }

struct Case {
  int ranks;
  double product, message;
};
const std::vector<Case> cases = {{2, 4, 2}, {2, 2, 8}, {4, 8, 4}, {4, 2, 8}};

}  // namespace

TEST_CASE("a ring exchange hides behind a product all but what the slower of the two leaves") {
  // In a row (n-1)/n a + t. By ring n-1 exchanges of a/n beside n pieces of t/n, the first of which
  // waits for none: t where a piece takes longer than an exchange, else (n-1)/n a + t/n.
  for (const auto& [n, t, a] : cases) {
    CAPTURE(n, t, a);
    const double in_a_row = (n - 1) * a / n + t;
    const double by_ring = t > a ? t : (n - 1) * a / n + t / n;
    CHECK(equal(makespan(n, {}, columns, t, a) - makespan(n, {ring_forward}, columns, t, a),
                column_count * (in_a_row - by_ring)));
    CHECK(equal(makespan(n, {}, columns_backward, t, a) -
                    makespan(n, {ring_backward}, columns_backward, t, a),
                row_count * (in_a_row - by_ring)));
  }
}

TEST_CASE("a gather beside the product of the own share hides the shorter of the two") {
  // (n-1)/n a + t in a row; max((n-1)/n a, t/n) + (n-1)/n t with the own share first.
  for (const auto& [n, t, a] : cases) {
    CAPTURE(n, t, a);
    CHECK(equal(makespan(n, {}, columns, t, a) - makespan(n, {own_forward}, columns, t, a),
                column_count * std::min((n - 1) * a / n, t / n)));
  }
}

TEST_CASE("pieces are scattered beside the products of the next ones") {
  // t + c in a row, c = (n-1)/n a; in k pieces the slower goes on and the faster adds one piece.
  for (const auto& [n, t, a] : cases) {
    for (const int k : {2, 3, 4}) {
      CAPTURE(n, t, a, k);
      const double c = (n - 1) * a / n;
      const double in_pieces = std::max(t + c / k, t / k + c);
      const cost::ScatterInPieces rule{.pieces = k};
      CHECK(equal(makespan(n, {}, rows, t, a) - makespan(n, {rule}, rows, t, a),
                  row_count * (t + c - in_pieces)));
    }
  }
}

TEST_CASE("copy engines slow no product down, and one that spares multiprocessors is not slowed") {
  cost::CollectiveConstants slowing = ideal_network();
  slowing.compute_slowdown = cost::Constant<double>{.value = 0.5, .source = {}};
  const auto slowed_by = [&](const cost::Rule& rule, const std::set<std::string>& products) {
    return makespan(4, {rule}, products, 8, 4, slowing) - makespan(4, {rule}, products, 8, 4);
  };
  CHECK(equal(slowed_by(ring_forward, columns), 0));
  // The gather takes 3 units, beside which 2 of each product become 3.5: at half speed for 3.
  CHECK(equal(slowed_by(own_forward, columns), column_count * 0.5));
  CHECK(equal(slowed_by(cost::ScatterInPieces{.pieces = 2, .multiprocessors = 16}, rows), 0));
  CHECK(slowed_by(cost::ScatterInPieces{.pieces = 2}, rows) > 1);
}

TEST_CASE("pieces have the bytes, the FLOPs and the buffers of the whole") {
  const auto sent = [](const program::Program& program, int ranks) {
    Bytes bytes;  // that a rank sends in one iteration
    for (const program::Call& call : program.sequences[0].calls) {
      for (const program::Task& task : program.blocks[call.block].tasks) {
        const auto* one = std::get_if<program::Collective>(&task.work);
        if (one != nullptr) bytes += cost::ring_factor(one->kind, ranks) * one->payload;
      }
    }
    return bytes;
  };
  for (const int ranks : {2, 4}) {
    const program::Program whole = lowered(ranks, {});
    for (const std::vector<cost::Rule>& rules :
         {std::vector<cost::Rule>{ring_forward, ring_backward, cost::ScatterInPieces{3}},
          std::vector<cost::Rule>{own_forward}}) {
      const program::Program cut = lowered(ranks, rules);
      CHECK(task_count(cut, cut.sequences[0]) > task_count(whole, whole.sequences[0]));
      CHECK(std::abs(hardware_flops(cut) / hardware_flops(whole) - 1) < 1e-12);
      CHECK(std::abs(sent(cut, ranks) / sent(whole, ranks) - 1) < 1e-12);
      for (std::size_t b = 0; b < whole.blocks.size(); ++b) {
        Bytes before, after;
        for (const program::Slot& slot : whole.blocks[b].slots) before += slot.bytes;
        for (const program::Slot& slot : cut.blocks[b].slots) after += slot.bytes;
        CHECK(before == after);
      }
    }
  }
}

TEST_CASE("a share that an earlier stage sends has arrived before its product begins") {
  // A Llama's layer ends with a product and a sum: the gradient that stage 1 sends is the share of
  // that product's, which the product reads beside the gather.
  const model::LlamaConfig config{.layers = 4,
                                  .hidden = 48,
                                  .heads = 8,
                                  .kv_heads = 4,
                                  .intermediate = 104,
                                  .sequence = 20,
                                  .vocabulary = 112,
                                  .batch = 12};
  const program::Program program =
      UnitPipeline::lowered(R"({"tensor": 2, "sequence_parallel": true, "pipeline": 2})",
                            model::llama(config), 1, {.rules = {ring_forward, ring_backward}});
  const program::Calls& calls = program.sequences[0].calls;
  int checked = 0;
  for (const program::Call& call : calls) {
    const std::vector<program::Task>& tasks = program.blocks[call.block].tasks;
    for (const program::Wait& wait : call.waits) {
      const program::Task& sent = program.blocks[calls[wait.of_call].block].tasks[wait.of_task];
      const bool exchanged = tasks[wait.task].name.find("all_gather") != std::string::npos;
      if (!exchanged || sent.stream != program::Stream::receive_backward) continue;
      CHECK(tasks[0].name.find(", piece 1 of 2") != std::string::npos);
      CHECK(std::ranges::count(call.waits, program::Wait{0, wait.of_call, wait.of_task}) == 1);
      ++checked;
    }
  }
  CHECK(checked == 1);
}

TEST_CASE("products without neighbours of their own, and stages on lists of devices, stay whole") {
  // Gradients of weights sum over tokens: the gather before them is not theirs to be cut.
  for (const program::Block& block : lowered(2, {ring_forward}).blocks) {
    for (const program::Task& task : block.tasks)
      CHECK((task.name.find(".W, piece") == std::string::npos));
  }
  const model::Graph graph = model::gpt(lowering::small_gpt);
  const strategies::Plan plan =
      lowering::with_lists(lowering::plan_of(graph, R"({"tensor": 2, "sequence_parallel": true})"));
  const cost::Stack cuts{.rules = {ring_forward, ring_backward, cost::ScatterInPieces{2}}};
  CHECK(to_text(lowering::lower(plan, cuts), graph) == to_text(lowering::lower(plan, {}), graph));
}

}  // namespace stratagem::sim::in_pieces

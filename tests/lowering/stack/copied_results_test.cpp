// A fused attention that saves its result beside the copy that others read.
#include "lowering/stack/copied_results.hpp"

#include <algorithm>
#include <string>

#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::copied_results_test {
namespace {

using placement::CellPass;
using program::Category;

constexpr model::LlamaConfig small_llama{.layers = 4,
                                         .hidden = 64,
                                         .heads = 8,
                                         .kv_heads = 4,
                                         .intermediate = 168,
                                         .sequence = 20,
                                         .vocabulary = 112,
                                         .batch = 12};
constexpr double tokens = 240, hidden = 64;

/// What the stack of the second differs in from that of the first.
struct Both {
  program::Block once, copied;
};

Both forward(const std::string& strategy) {
  const model::Graph graph = model::llama(small_llama);
  const strategies::Plan plan = plan_of(graph, strategy, 2);
  cost::Stack stack = plain_stack();
  const program::Program once = lower(plan, stack);
  stack.rules.emplace_back(cost::CopiedResult{"FlashAttention-2"});
  const program::Program copied = lower(plan, stack);
  return {block_of(once, 1, CellPass::forward), block_of(copied, 1, CellPass::forward)};
}

Bytes all_kept(const program::Block& block) {
  return left_by(block, Category::activations) + left_by(block, Category::statistics);
}

}  // namespace

TEST_CASE(
    "an attention that copies its result keeps two: 2bsh/t bytes more, and a kernel moves it") {
  for (const int t : {1, 2, 4}) {
    const auto [once, copied] = forward(R"({"tensor": )" + std::to_string(t) + "}");
    const Bytes result{2 * tokens * hidden / t};
    CHECK(close(all_kept(copied) - all_kept(once), result, 1e-14));
    REQUIRE(copied.tasks.size() == once.tasks.size() + 1);
    const auto copy =
        std::ranges::find(copied.tasks, "attention.core copies its result", &program::Task::name);
    REQUIRE(copy != copied.tasks.end());
    const auto& kernel = std::get<cost::Kernel>(copy->work);
    CHECK(kernel.kind == cost::KernelKind::elementwise);
    CHECK(kernel.launches == 1);
    CHECK(close(kernel.traffic, 2 * result, 1e-14));  // read and written
  }
}

TEST_CASE("what is recomputed keeps neither") {
  const auto [once, copied] = forward(R"({"recompute": "full"})");
  CHECK(all_kept(copied) == all_kept(once));
}

}  // namespace stratagem::lowering::copied_results_test

// What tensor ranks exchange for adapters: tensors of the adapters' rank, and no states twice.
#include "model/adapters.hpp"

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::adapters_test {
namespace {

using placement::CellPass;

/// Collectives of the second layer that carry a tensor as wide as the hidden states, by kind.
std::map<cost::CollectiveKind, int> wide(const model::Graph& graph, const std::string& strategy,
                                         CellPass pass, double least) {
  const program::Program program = lowered(graph, strategy);
  std::map<cost::CollectiveKind, int> kinds;
  for (const program::Collective& one : collectives(block_of(program, 2, pass))) {
    if (one.payload >= Bytes{least}) ++kinds[one.kind];
  }
  return kinds;
}

}  // namespace

TEST_CASE("adapters exchange no tensor as wide as hidden states") {
  const model::Graph plain = model::gpt(small_gpt);
  const model::Graph graph = model::with_adapters(
      plain, 2, [](const model::Tensor& weight) { return weight.name.starts_with("layers."); });
  const double states = 2.0 * small_gpt.batch * small_gpt.sequence * small_gpt.hidden;
  for (const std::string strategy :
       {R"({"tensor": 2})", R"({"tensor": 4, "sequence_parallel": true})"}) {
    CAPTURE(strategy);
    const auto forward = wide(graph, strategy, CellPass::forward, states);
    CHECK(!forward.empty());
    CHECK(forward == wide(plain, strategy, CellPass::forward, states));
    // Frozen weights want no gradient, for which their operands would be gathered again.
    auto backward = wide(plain, strategy, CellPass::backward, states);
    if (strategy.find("sequence") != std::string::npos)
      backward[cost::CollectiveKind::all_gather] -= 2;
    CHECK(wide(graph, strategy, CellPass::backward, states) == backward);
  }
}

}  // namespace stratagem::lowering::adapters_test

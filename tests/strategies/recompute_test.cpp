// Full recomputation runs every layer's forward pass again, and nothing else.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/strategies/lowered.hpp"

namespace stratagem::strategies {

namespace {

std::vector<std::string> forward_names(const Block& block, bool again) {
  std::vector<std::string> names;
  for (const Task& task : block.tasks) {
    if (task.recomputed == again && std::holds_alternative<cost::Kernel>(task.work))
      names.push_back(task.name);
  }
  return names;
}

}  // namespace

TEST_CASE("layers are recomputed, embeddings and head are not") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"recompute": "full"})");
  for (int segment = 0; segment <= 5; ++segment) {
    INFO(segment);
    const std::vector<std::string> again =
        forward_names(block_of(program, segment, CellPass::backward), true);
    const std::vector<std::string> once =
        forward_names(block_of(program, segment, CellPass::forward), false);
    CHECK(again.size() == (segment >= 1 && segment <= 4 ? once.size() : 0));
    for (std::size_t i = 0; i < again.size(); ++i) CHECK_THAT(again[i], StartsWith(once[i]));
  }
}

TEST_CASE(
    "recomputation adds the FLOPs of the layers' forward pass to the hardware's, none to the "
    "model's") {
  // 24bsh^2(1 + s/6h) per layer.
  const model::Graph graph = model::gpt(small_gpt);
  const FlopCount plain = count_flops(lowered(graph, "{}", 3));
  const FlopCount again = count_flops(lowered(graph, R"({"recompute": "full"})", 3));
  const double b = 12, s = 20, h = 48;
  CHECK(plain.hardware == plain.model);
  CHECK(again.model == plain.model);
  CHECK(close(again.hardware - plain.hardware,
              Flops{3 * 4 * (24 * b * s * h * h + 4 * b * s * s * h)}, 1e-12));
}

TEST_CASE("what is recomputed is dead when its backward block ends") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"recompute": "full"})");
  const Block& block = block_of(program, 2, CellPass::backward);
  CHECK(left_by(block, Category::activations) == 0_B);
  CHECK(left_by(block, Category::statistics) == 0_B);
  CHECK(left_by(block, Category::checkpoints) == -1.0 * 2 * 20 * 12 * 48 * 1_B);  // the layer's own
}

}  // namespace stratagem::strategies

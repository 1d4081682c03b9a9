// Frozen parameters: no gradient, no sum of gradients, no optimizer state, and less to keep.
#include <algorithm>
#include <set>

#include "model/builder.hpp"
#include "tests/catch.hpp"
#include "tests/strategies/lowered.hpp"

namespace stratagem::strategies {

namespace {

/// A GPT of which only the parameters that `trained` accepts are trained.
template <typename Accepts>
model::Graph gpt_training(const Accepts& trained) {
  model::Graph graph = model::forward_pass(model::gpt(small_gpt));
  for (model::Tensor& tensor : graph.tensors) {
    if (tensor.role == model::Role::parameter) tensor.requires_grad = trained(tensor.name);
  }
  model::differentiate(graph, graph.loss);
  return graph;
}

bool starts(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

}  // namespace

TEST_CASE("frozen parameters are resident, but have neither gradients nor optimizer states") {
  const model::Graph graph =
      gpt_training([](const std::string& name) { return starts(name, "layers.3."); });
  for (const std::string strategy : {"{}", R"({"data": 2})"}) {
    INFO(strategy);
    const Program program = lowered(graph, strategy, 2);
    const double layer = 12.0 * 48 * 48 + 13 * 48;
    const Sequence& sequence = program.sequences[0];
    CHECK(resident(sequence, Category::parameters) ==
          static_cast<double>(model::gpt_parameters(small_gpt)) * 2_B);
    CHECK(resident(sequence, Category::gradients) == layer * 2_B);
    CHECK(resident(sequence, Category::optimizer_states) == layer * 12_B);
    Bytes summed;
    for (const Collective& one : collectives(program, 0, Stream::gradient_communication))
      summed += one.payload;
    CHECK(summed == (strategy == "{}" ? 0 : layer) * 2_B);
  }
}

TEST_CASE("layers before the first trained one keep no activations") {
  const model::Graph graph =
      gpt_training([](const std::string& name) { return starts(name, "layers.3."); });
  const Program program = lowered(graph, "{}");
  for (int segment = 0; segment <= 2; ++segment) {
    CHECK(left_by(block_of(program, segment, CellPass::forward), Category::activations) == 0_B);
    CHECK(left_by(block_of(program, segment, CellPass::forward), Category::statistics) == 0_B);
  }
}

TEST_CASE("a frozen layer runs again with those after it, for the input of the first trained one") {
  const model::Graph graph =
      gpt_training([](const std::string& name) { return starts(name, "layers.3."); });
  const double input = 2.0 * 20 * 12 * 48;
  for (const std::string schedule : {"", R"(, "schedule": "zb-h1")"}) {
    const Program program = lowered(graph, R"({"recompute": {"every": 2})" + schedule + "}", 2);
    // Layers 0 and 1 need nothing again; layer 2's input waits, and with it all of layer 3's.
    CHECK(left_by(block_of(program, 1, CellPass::forward), Category::checkpoints) == 0_B);
    CHECK(left_by(block_of(program, 2, CellPass::forward), Category::checkpoints) == input * 1_B);
    CHECK(left_by(block_of(program, 3, CellPass::forward), Category::checkpoints) == 0_B);
    CHECK(left_by(block_of(program, 3, CellPass::forward), Category::activations) == 0_B);
    const Block& again = block_of(program, 3, CellPass::backward);  // the first block in the cell
    CHECK(again.name.starts_with("F again"));
    CHECK(left_by(again, Category::checkpoints) == -input * 1_B);
  }
}

TEST_CASE("stages before the first trained parameter get no gradients") {
  const model::Graph graph =
      gpt_training([](const std::string& name) { return starts(name, "layers.3."); });
  const Program program = lowered(graph, R"({"pipeline": 2})", 2);
  CHECK(collectives(program, 1, Stream::send_forward).empty());
  CHECK(collectives(program, 0, Stream::send_forward).size() == 2);
  CHECK(collectives(program, 1, Stream::send_backward).empty());
  CHECK(collectives(program, 0, Stream::receive_backward).empty());
}

TEST_CASE("a frozen tied table is not summed between stages") {
  const model::Graph graph =
      gpt_training([](const std::string& name) { return name != "embedding.words"; });
  const Program program = lowered(graph, R"({"pipeline": 2})", 2);
  CHECK(collectives(program, 0, Stream::gradient_communication).empty());
}

}  // namespace stratagem::strategies

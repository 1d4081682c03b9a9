// Frozen parameters: no gradient, no sum of gradients, no optimizer state, and less to keep.
#include <algorithm>
#include <set>

#include "model/builder.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::lowering::frozen_test {

using placement::CellPass;
using program::Category;
using program::Program;
using program::Sequence;
using program::Stream;

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
    for (const program::Collective& one : collectives(program, 0, Stream::gradient_communication))
      summed += one.payload;
    CHECK(summed == (strategy == "{}" ? 0 : layer) * 2_B);
  }
}

TEST_CASE("without a flush older versions are kept of trained weights alone") {
  const model::Graph graph =
      gpt_training([](const std::string& name) { return starts(name, "layers.0."); });
  const auto first_stage = [&](const std::string& schedule) {
    const std::string strategy = R"({"pipeline": 2, "schedule": ")" + schedule + "\"}";
    return resident(lowered(graph, strategy, 2).sequences[0], Category::parameters);
  };
  const double layer = 12.0 * 48 * 48 + 13 * 48;
  CHECK(first_stage("pipedream") == first_stage("1f1b") + layer * 2_B);  // one version more
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
    const program::Block& again =
        block_of(program, 3, CellPass::backward);  // the first block in the cell
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

namespace {

const model::Graph& prefix_tuned() {
  static const model::Graph graph = [] {
    model::GptConfig config = small_gpt;
    config.prefix = 5;
    return model::gpt(config);
  }();
  return graph;
}

/// Keys and values of five places in four layers.
constexpr double prefix_elements = 2.0 * 4 * 5 * 48;

Bytes summed_gradients(const Program& program) {
  Bytes sum;
  for (const program::Collective& one : collectives(program, 0, Stream::gradient_communication))
    sum += one.payload;
  return sum;
}

}  // namespace

TEST_CASE("of a prefix-tuned GPT only prefixes have gradients and optimizer states") {
  const double all = static_cast<double>(model::parameter_count(prefix_tuned()));
  struct Case {
    std::string strategy;
    double parts = 1, shards = 1;  ///< of weights; of what belongs to the trained ones, besides
    double summed = 0;             ///< elements of gradients that are reduced
  };
  for (const Case& one : {Case{"{}"}, Case{R"({"data": 2})", 1, 1, prefix_elements},
                          Case{R"({"zero": 1, "data": 2})", 1, 2, prefix_elements}}) {
    INFO(one.strategy);
    const Program program = lowered(prefix_tuned(), one.strategy, 2);
    const Sequence& sequence = program.sequences[0];
    CHECK(resident(sequence, Category::parameters) == all * 2_B);
    CHECK(resident(sequence, Category::gradients) == prefix_elements * 2_B);
    CHECK(resident(sequence, Category::optimizer_states) == prefix_elements / one.shards * 12_B);
    CHECK(summed_gradients(program) == one.summed * 2_B);
  }
}

TEST_CASE("tensor ranks divide prefixes along heads, and sum no gradients of theirs") {
  const Program program = lowered(prefix_tuned(), R"({"tensor": 2})");
  const Sequence& sequence = program.sequences[0];
  CHECK(resident(sequence, Category::gradients) == prefix_elements / 2 * 2_B);
  CHECK(resident(sequence, Category::optimizer_states) == prefix_elements / 2 * 12_B);
  CHECK(summed_gradients(program) == 0_B);
}

TEST_CASE("a prefix-tuned layer keeps no input of a matrix with weights") {
  // Queries, prefixed keys and values, probabilities before and after dropout (products of
  // activations need both factors), inputs of the MLP's norm and of the next layer's, fc1's result
  // for the gelu. Not kept: results of norms, of the gelu and of the attention, which only weights'
  // gradients read. Scores have 20 queries and 25 keys; dropout's masks are bytes.
  const Program program = lowered(prefix_tuned(), "{}");
  const program::Block& layer = block_of(program, 2, CellPass::forward);
  const double hidden = 12 * 20 * 48, scores = 12 * 8 * 20 * 25, prefixed = 12 * 25 * 48;
  CHECK(left_by(layer, Category::activations) ==
        2_B * (hidden + 2 * prefixed + 2 * scores + 2 * hidden + 4 * hidden) +
            1_B * (scores + 2 * hidden));
}

TEST_CASE("slices of tokens do not go with prefixes") {
  const std::string why =
      refusal([] { lowered(prefix_tuned(), R"({"pipeline": 2, "token_slices": [8, 12]})", 2); });
  CHECK(why.find("/strategy/token_slices") != std::string::npos);
  CHECK(why.find("no prefix of keys") != std::string::npos);
}

}  // namespace stratagem::lowering::frozen_test

// Full recomputation runs every layer's forward pass again, and nothing else.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::recompute_test {

using lowering::block_of;
using lowering::left_by;
using lowering::lower;
using lowering::lowered;
using lowering::operator_named;
using lowering::plain_stack;
using lowering::small_gpt;
using placement::CellPass;
using program::Block;
using program::Category;
using program::Program;

namespace {

std::vector<std::string> forward_names(const Block& block, bool again) {
  std::vector<std::string> names;
  for (const program::Task& task : block.tasks) {
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
    "recomputation adds the FLOPs of the layers' forward pass to the hardware's: 96BLsh^2(1 + s/6h "
    "+ "
    "V/16Lh) in all") {
  // 24bsh^2(1 + s/6h) per layer to 72BLsh^2(1 + s/6h + V/12Lh); logits are not computed again.
  // Source: Narayanan et al., arXiv:2104.04473, equation 3.
  const model::Graph graph = model::gpt(small_gpt);
  const Program plain = lowered(graph, "{}", 3);
  const Program again = lowered(graph, R"({"recompute": "full"})", 3);
  const double b = 3 * 12, s = 20, h = 48, l = 4, v = 112;
  CHECK(close(hardware_flops(plain),
              Flops{72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * l * h))}, 1e-12));
  CHECK(close(hardware_flops(again),
              Flops{96 * b * l * s * h * h * (1 + s / (6 * h) + v / (16 * l * h))}, 1e-12));
  CHECK(lowering::flops_once(again) == hardware_flops(plain));
}

TEST_CASE("selective recomputation repeats scores, softmax, dropout and context, and their FLOPs") {
  // Two products of 2bs^2h each per layer: s/18h of 72BLsh^2. (Korthikanti et al.,
  // arXiv:2205.05198, add s/6h, three times as much.)
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"recompute": "selective"})", 3);
  for (int segment = 0; segment <= 5; ++segment) {
    INFO(segment);
    const std::vector<std::string> expected = {"attention.scores again", "attention.softmax again",
                                               "attention.dropout again",
                                               "attention.context again"};
    const bool layer = segment >= 1 && segment <= 4;
    CHECK(forward_names(block_of(program, segment, CellPass::backward), true) ==
          (layer ? expected : std::vector<std::string>{}));
  }
  const double b = 3 * 12, s = 20, h = 48, l = 4, v = 112;
  CHECK(lowering::flops_once(program) == hardware_flops(lowered(graph, "{}", 3)));
  CHECK(close(hardware_flops(program),
              Flops{72 * b * l * s * h * h * (1 + s / (6 * h) + s / (18 * h) + v / (12 * l * h))},
              1e-12));
}

TEST_CASE("selective recomputation communicates nothing more, with tensor parallelism, too") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program plain = lowered(graph, R"({"tensor": 4})");
  const Program again = lowered(graph, R"({"tensor": 4, "recompute": "selective"})");
  for (const CellPass pass : {CellPass::forward, CellPass::backward})
    CHECK(lowering::collectives(block_of(again, 2, pass)).size() ==
          lowering::collectives(block_of(plain, 2, pass)).size());
}

TEST_CASE("a group runs again right before the first gradient that reads what it computes") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"recompute": "selective"})");
  const Block& block = block_of(program, 2, CellPass::backward);
  const auto place = [&](const std::string& name) {
    return std::ranges::find(block.tasks, name, &program::Task::name) - block.tasks.begin();
  };
  // Gradients of the context's product come first: the one of the probabilities reads the values,
  // which are kept, the one of the values the probabilities after dropout.
  CHECK(place("attention.context.B") + 1 == place("attention.scores again"));
  CHECK(place("attention.context again") + 1 == place("attention.context.B2"));
}

TEST_CASE("a group leaves what other operators need, and its inputs") {
  // fc1 to gelu as a group: fc2's weight gradient reads the gelu's result, so that is kept; what
  // the gelu's own gradient reads is not.
  const model::Graph graph = model::gpt(small_gpt);
  const model::OpId first = operator_named(graph, "layers.0.mlp.fc1");
  Plan plan(graph);
  plan.recompute({first, first + 1, first + 2});
  const double sbh = 20.0 * 12 * 48;
  const Bytes kept = left_by(block_of(lower(Plan(graph), plain_stack()), 1, CellPass::forward),
                             Category::activations);
  const Block block = block_of(lower(plan, plain_stack()), 1, CellPass::forward);
  CHECK(left_by(block, Category::activations) == kept - Bytes{(8 + 2) * sbh});  // gelu's input
  CHECK(left_by(block, Category::checkpoints) == Bytes{2 * sbh});               // fc1's
}

TEST_CASE(
    "a group that drops its results keeps its inputs alone, and runs before any that reads them") {
  // The same group: gelu's result, 8sbh bytes, is not kept either; fc2's weight gradient reads the
  // second one.
  const model::Graph graph = model::gpt(small_gpt);
  const model::OpId first = operator_named(graph, "layers.0.mlp.fc1");
  Plan plan(graph);
  plan.recompute({first, first + 1, first + 2}, true);
  const double sbh = 20.0 * 12 * 48;
  const Bytes kept = left_by(block_of(lower(Plan(graph), plain_stack()), 1, CellPass::forward),
                             Category::activations);
  const Program program = lower(plan, plain_stack());
  const Block& forward = block_of(program, 1, CellPass::forward);
  CHECK(left_by(forward, Category::activations) == kept - Bytes{(8 + 2 + 8) * sbh});
  CHECK(left_by(forward, Category::checkpoints) == Bytes{2 * sbh});
  const Block& backward = block_of(program, 1, CellPass::backward);
  const auto place = [&](const std::string& name) {
    const auto found = std::ranges::find(backward.tasks, name, &program::Task::name);
    REQUIRE(found != backward.tasks.end());
    return found - backward.tasks.begin();
  };
  CHECK(place("mlp.gelu again") < place("mlp.fc2.W"));
  CHECK(place("mlp.gelu again") < place("mlp.gelu.B"));
  // A layer's result is another segment's input: it is kept.
  const auto& layer = graph.segments[1].forward;
  Plan whole(graph);
  whole.recompute(layer, true);
  Plan usual(graph);
  usual.recompute(layer);
  CHECK(to_text(lower(whole, plain_stack()), graph) == to_text(lower(usual, plain_stack()), graph));
}

TEST_CASE("an operator is recomputed in one group, and a group is of one segment") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  const std::vector<model::OpId>& layer = graph.segments[1].forward;
  plan.recompute(layer);
  plan.recompute({layer.back()});  // a part of a layer that runs again as a whole
  for (const auto& again : {layer, {layer[3], layer.back()}})
    CHECK_THAT(lowering::refusal([&] { plan.recompute(again); }),
               ContainsSubstring("every operator in one recomputed group"));
  CHECK_THAT(lowering::refusal([&] {
               plan.recompute({graph.segments[2].forward.front(), graph.segments[3].forward[0]});
             }),
             ContainsSubstring("a recomputed group of one segment, or of all operators of"));
}

TEST_CASE("where B and W are split, a group runs in the one that needs it first") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string recompute : {"selective", "full"}) {
    INFO(recompute);
    const Program program = lowered(
        graph, R"({"pipeline": 2, "schedule": "zb-h1", "recompute": ")" + recompute + "\"}", 4);
    CHECK_FALSE(forward_names(block_of(program, 1, CellPass::backward), true).empty());
    CHECK(forward_names(block_of(program, 1, CellPass::weight), true).empty());
  }
  // Only the weight gradient of fc2 reads the gelu's result; the gelu's own reads its input.
  Plan plan(graph);
  plan.split_backward(0, 0);
  plan.recompute(
      {operator_named(graph, "layers.0.mlp.gelu"), operator_named(graph, "layers.0.mlp.fc2")});
  plan.chain({{0, 0, CellPass::forward}, {0, 0, CellPass::backward}, {0, 0, CellPass::weight}});
  const Program program = lower(plan, plain_stack());
  CHECK(forward_names(block_of(program, 1, CellPass::backward), true).empty());
  CHECK(forward_names(block_of(program, 1, CellPass::weight), true) ==
        std::vector<std::string>{"mlp.gelu again", "mlp.fc2 again"});
}

TEST_CASE("what is recomputed is freed when its backward block ends") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"recompute": "full"})");
  const Block& block = block_of(program, 2, CellPass::backward);
  CHECK(left_by(block, Category::activations) == 0_B);
  CHECK(left_by(block, Category::statistics) == 0_B);
  CHECK(left_by(block, Category::checkpoints) == -1.0 * 2 * 20 * 12 * 48 * 1_B);  // the layer's own
}

}  // namespace stratagem::strategies::recompute_test

// What the primitives accept, and which plans the lowering refuses.
#include "strategies/plan/plan.hpp"

#include "strategies/schedules/all.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::plan_test {

using lowering::lower;
using lowering::operator_named;
using lowering::plain_stack;
using lowering::refusal;
using lowering::small_gpt;
using placement::CellPass;

namespace {

/// A plan with every operator replicated over two devices, but for one that `dim` of is divided.
std::string lowering_of(const model::Graph& graph, const std::string& name,
                        const std::string& dim) {
  Plan plan(graph);
  for (const model::OpId op : plan.operators()) {
    const bool divided = graph.operators[op].name == name;
    plan.assign(plan.trans(op, {.dim = divided ? dim : "", .parts = 2}),
                {.name = "pair", .size = 2, .stride = 1});
  }
  return refusal([&] { lower(plan, plain_stack()); });
}

}  // namespace

TEST_CASE("only dimensions that an operator lets be split are split") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  const auto refused = [&](const std::string& name, const std::string& dim, int parts) {
    return refusal([&] { plan.trans(operator_named(graph, name), {.dim = dim, .parts = parts}); });
  };
  // A norm needs all of a token; softmax all of a row; z is nowhere; 20 tokens are not 3 equal
  // parts.
  CHECK_THAT(refused("layers.0.input_norm", "h", 2), ContainsSubstring("layers.0.input_norm"));
  CHECK_THAT(refused("layers.0.attention.softmax", "t", 2),
             ContainsSubstring("layers.0.attention.softmax"));
  CHECK_THAT(refused("layers.0.attention.split_heads", "d", 2), ContainsSubstring("split_heads"));
  CHECK_THAT(refused("layers.0.input_norm", "z", 2), ContainsSubstring("dimension z"));
  CHECK_THAT(refused("layers.0.input_norm", "s", 3), ContainsSubstring("3 equal parts"));
  CHECK(refused("layers.0.input_norm", "s", 4).empty());
}

TEST_CASE("heads limit how often the fused dimension of queries, keys and values is split") {
  // The dimension has 3*48 elements, but 8 heads: 16 parts would cut heads.
  const model::Graph graph = model::gpt(small_gpt);
  const model::OpId op = operator_named(graph, "layers.0.attention.split_heads");
  CHECK(size_of_dimension(graph, graph.operators[op], "heads") == 8);
  Plan plan(graph);
  CHECK(refusal([&] { plan.trans(op, {.dim = "heads", .parts = 8}); }).empty());
  CHECK_THAT(refusal([&] { plan.trans(op, {.dim = "heads", .parts = 2}); }),
             ContainsSubstring("16 equal parts"));
}

TEST_CASE("parts are assigned to as many devices as there are parts") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  const Parts parts = plan.trans(plan.operators()[0], {.dim = "b", .parts = 4});
  CHECK_THROWS_AS(plan.assign(parts, {.name = "data", .size = 2, .stride = 1}), BrokenPromise);
}

TEST_CASE("every part of an operator needs a device of its own: refused by operator and device") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::vector<int>& devices) {
    Plan plan(graph);
    const model::OpId gelu = operator_named(graph, "layers.2.mlp.gelu");
    plan.trans(gelu, {.dim = "s", .parts = 2});
    plan.assign(gelu, devices);
    return refusal([&] { lower(plan, plain_stack()); });
  };
  CHECK(refused({0, 1}).empty());
  CHECK_THAT(refused({1, 1}),
             ContainsSubstring("layers.2.mlp.gelu") && ContainsSubstring("two on device 1"));
  CHECK_THAT(refused({0}),
             ContainsSubstring("layers.2.mlp.gelu") && ContainsSubstring("1 devices"));
  CHECK_THAT(refused({0, -1}), ContainsSubstring("layers.2.mlp.gelu") && ContainsSubstring("-1"));
  CHECK_THAT(refused({0, 2}), ContainsSubstring("device 1"));  // has no part of any operator
}

TEST_CASE("unequal parts need the flag, and an element each") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  const model::OpId norm = operator_named(graph, "layers.0.input_norm");
  const auto refused = [&](int parts, bool uneven) {
    return refusal([&] { plan.trans(norm, {.dim = "s", .parts = parts, .uneven = uneven}); });
  };
  CHECK_THAT(refused(3, false), ContainsSubstring("3 equal parts"));
  CHECK_THAT(refused(21, true), ContainsSubstring("21 parts"));
  CHECK(refused(3, true).empty());
  // No option of a scenario sets the flag: 112 words are not 3 equal parts.
  CHECK_THAT(refusal([&] { lowering::lowered(graph, R"({"tensor": 3})"); }),
             ContainsSubstring("vocabulary") && ContainsSubstring("3 equal parts"));
}

TEST_CASE("operators that see different parts of one parameter are refused by its name") {
  // The token table divided for the lookup, but whole for the logits.
  const model::Graph graph = model::gpt(small_gpt);
  CHECK_THAT(lowering_of(graph, "embedding.lookup", "vocabulary"),
             ContainsSubstring("embedding.words"));
}

TEST_CASE("a lone divided operator is legal: its operands are converted") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK(lowering_of(graph, "layers.1.mlp.gelu", "n").empty());
  CHECK(lowering_of(graph, "layers.1.mlp.fc2", "k").empty());
  CHECK(lowering_of(graph, "layers.1.mlp_norm", "s").empty());
}

TEST_CASE("two stages on one device need an order between their cells") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  plan.stages = {{0, 1, 2}, {3, 4, 5}};
  plan.micro_batches = 2;
  std::get<Schedule::Rules>(schedule_named("gpipe").orders)(plan);
  CHECK_THAT(refusal([&] { lower(plan, plain_stack()); }),
             ContainsSubstring("on device 0 and ") && ContainsSubstring("an op-order between"));
  plan.order({1, 0, CellPass::forward}, {0, 1, CellPass::forward});
  plan.order({0, 0, CellPass::backward}, {1, 1, CellPass::backward});
  CHECK(lowering::cells_of(lower(plan, plain_stack()), 0) == "F0 F1 B0 B1");
}

TEST_CASE("an order between cells that the plan does not have is refused by their names") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  plan.order({0, 0, CellPass::forward}, {1, 0, CellPass::forward});
  CHECK_THAT(refusal([&] { lower(plan, plain_stack()); }),
             ContainsSubstring("F(stage 1, micro-batch 0)"));
}

TEST_CASE("a plan knows who said what: the first for each thing, and for each group of its own") {
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  plan.note_said("/nothing");
  CHECK(plan.said.updates.empty());
  CHECK(plan.said.slices.empty());
  CHECK(plan.steps.said.empty());
  plan.updates.flush = false;
  plan.recompute(graph.segments[1].forward);
  plan.note_said("/a");
  plan.token_slices = {10, 10};
  plan.steps.on_host = true;
  plan.recompute(graph.segments[2].forward);
  plan.residency.keep({.what = Keep::What::gradients, .divided = {"data"}});
  plan.note_said("/b");
  CHECK(plan.said.updates == "/a");
  CHECK(plan.said.again == std::vector<std::string>{"/a", "/b"});
  CHECK(plan.said.slices == "/b");
  CHECK(plan.said.gradients.empty());
  CHECK(plan.steps.said == "/b");
  CHECK(plan.residency.said({Keep::What::gradients}) == "/b");
}

TEST_CASE("of a rule that two say, the one who divides is known beside the one who moves") {
  Residency residency;
  residency.keep({.what = Keep::What::checkpoints, .divided = {"tensor"}, .said = "/divides"});
  residency.keep({.what = Keep::What::checkpoints, .where = Keep::Where::host, .said = "/moves"});
  CHECK(residency.said({Keep::What::checkpoints}) == "/moves");
  CHECK(residency.of(Keep::What::checkpoints)->said_divided == "/divides");
}

}  // namespace stratagem::strategies::plan_test

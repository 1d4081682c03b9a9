// Operators that divide what the user says: the transitions between neighbours are the expected
// collectives.
#include "model/cast_products.hpp"
#include "strategies/parallel/named_dimensions.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::operators_test {

using lowering::block_of;
using lowering::lowered;
using lowering::small_gpt;
using placement::CellPass;

namespace {

constexpr Bytes activation = 12.0 * 20 * 48 * 2_B;  // b*s*h in fp16

/// "mlp.fc1.out all_gather 92160": the collectives of a layer's pass.
std::vector<std::string> transitions(const std::string& operators, CellPass pass,
                                     const std::string& more = "",
                                     const model::Graph& graph = model::gpt(small_gpt)) {
  const program::Program program =
      lowered(graph, "{\"tensor\": 4, \"operators\": {" + operators + "}" + more + "}");
  std::vector<std::string> result;
  for (const program::Task& task : block_of(program, 2, pass).tasks) {
    const program::Collective* collective = lowering::collective_of(task);
    if (collective == nullptr) continue;
    result.push_back(task.name + " " +
                     std::to_string(static_cast<int>(collective->payload / activation)));
  }
  return result;
}

using Texts = std::vector<std::string>;
const std::string no_attention = R"("layers.*.attention.*": "")";

}  // namespace

TEST_CASE("a pattern's star stands for any text") {
  CHECK(matches("layers.0.mlp.fc1", "layers.*.mlp.fc1"));
  CHECK(matches("layers.12.mlp.fc1", "*.fc1"));
  CHECK(matches("layers.12.mlp.fc1", "layers.1*2.*"));
  CHECK(matches("head.logits", "head.logits*"));
  CHECK_FALSE(matches("layers.0.mlp.fc1.bias_add", "layers.*.mlp.fc1"));
  CHECK(matches("abab", "*ab"));
  CHECK(matches("", "**"));
  CHECK_FALSE(matches(std::string(200, 'a'), "*a*a*a*a*a*a*a*a*a*a*b"));  // and at once
  CHECK_FALSE(matches(std::string(200, 'a'), std::string(200, '*') + "x"));
  CHECK_FALSE(matches("layers.0.mlp.fc1", "mlp.*"));
  CHECK_FALSE(matches("", "a"));
  CHECK(matches("", "*"));
}

TEST_CASE("replicated attention leaves the MLP's all-reduces only") {
  CHECK(transitions(no_attention, CellPass::forward) == Texts{"mlp.fc2.product all_reduce 1"});
  CHECK(transitions(no_attention, CellPass::backward) == Texts{"mlp_norm.out.grad all_reduce 1"});
}

TEST_CASE("fc1 by columns and then nothing divided takes an all-gather of its 4bsh results") {
  const std::string columns = no_attention + R"(, "*.mlp.*": "", "*.mlp.fc1": "n")";
  CHECK(transitions(columns, CellPass::forward) == Texts{"mlp.fc1.product all_gather 4"});
  // Its gradient is whole: each rank takes its columns, and the input gradient is a partial sum.
  CHECK(transitions(columns, CellPass::backward) == Texts{"mlp_norm.out.grad all_reduce 1"});
}

TEST_CASE("fc1 by rows leaves partial sums of 4bsh") {
  const std::string rows = no_attention + R"(, "*.mlp.*": "", "*.mlp.fc1": "k")";
  CHECK(transitions(rows, CellPass::forward) == Texts{"mlp.fc1.product all_reduce 4"});
  CHECK(transitions(rows, CellPass::backward) == Texts{"mlp_norm.out.grad all_gather 1"});
}

TEST_CASE("neighbours that divide different dimensions exchange all to all") {
  // Tokens before gelu, columns after it.
  const std::string mixed =
      no_attention + R"(, "*.mlp.*": "s", "*.mlp.gelu": "n", "*.mlp_norm": "s")";
  const Texts forward = transitions(mixed, CellPass::forward);
  CHECK(std::ranges::count(forward, "mlp.fc1.out all_to_all 1") == 1);  // 4bsh / 4 ranks
  CHECK(std::ranges::count(forward, "mlp.gelu.out all_to_all 1") == 1);
  const Texts backward = transitions(mixed, CellPass::backward);
  CHECK(std::ranges::count(backward, "mlp.gelu.out.grad all_to_all 1") == 1);
  CHECK(std::ranges::count(backward, "mlp.fc1.out.grad all_to_all 1") == 1);
}

TEST_CASE("a cast is divided as the product that reads it") {
  const std::string tokens =
      no_attention + R"(, "*.mlp.fc1": "s", "*.mlp.fc1.bias_add": "s", "*.mlp.gelu": "s",
                        "*.mlp.fc2": "s", "*.mlp.fc2.bias_add": "s")";
  const model::Graph cast = model::cast_products(model::gpt(small_gpt), model::DataType::bf16);
  const Texts forward = transitions(tokens, CellPass::forward);
  CHECK(forward.size() == 1);  // behind the MLP
  CHECK(transitions(tokens, CellPass::forward, "", cast) == forward);
}

TEST_CASE("what is Megatron-LM's own choice may be said, and changes nothing") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::string said =
      R"({"tensor": 4, "operators": {"layers.*.mlp.fc1": "n", "layers.*.attention.*": "heads"}})";
  CHECK(to_text(lowered(graph, said)) == to_text(lowered(graph, R"({"tensor": 4})")));
}

TEST_CASE("of entries that name an operator the last one wins") {
  CHECK(transitions(R"("*.mlp.fc1": "", "layers.*.attention.*": "heads", "*.attention.*": "")",
                    CellPass::forward) == Texts{});
}

TEST_CASE("a tied table is divided for the logits as for the lookup") {
  const model::Graph graph = model::gpt(small_gpt);
  const program::Program program =
      lowered(graph, R"({"tensor": 4, "operators": {"embedding.lookup": ""}})");
  CHECK(lowering::collectives(block_of(program, 0, CellPass::forward)).empty());
  CHECK(lowering::collectives(block_of(program, 5, CellPass::forward)).empty());
}

TEST_CASE("entries that say nothing about the model are refused") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& operators) {
    return lowering::refusal(
        [&] { lowered(graph, R"({"tensor": 2, "operators": {)" + operators + "}}"); });
  };
  CHECK_THAT(refused(R"("layers.*.mlp.fc3": "n")"),
             StartsWith("test.json: /strategy/operators: expected a pattern of operators' names"));
  CHECK_THAT(refused(R"("layers.*.mlp.fc1": "heads")"), ContainsSubstring("that can divide heads"));
  CHECK_THAT(refused(R"("layers.*.mlp.fc1": 2)"),
             StartsWith("test.json: /strategy/operators/layers.*.mlp.fc1: "));
}

}  // namespace stratagem::strategies::operators_test

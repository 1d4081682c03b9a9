// TeraPipe: slices of the tokens, the keys that they see, and what they pass on.
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::token_slices_test {

using lowering::lowered;
using lowering::small_gpt;
using placement::CellPass;
using program::Program;

namespace {

/// The kernel of a task in the first block that runs for a slice and a pass of the first layer.
cost::Kernel kernel_of_slice(const Program& program, int slice, CellPass pass,
                             const std::string& task) {
  for (const program::Call& call : program.sequences[0].calls) {
    if (call.segment != 1 || call.cell.pass != pass || call.cell.slice != slice) continue;
    for (const program::Task& one : program.blocks[call.block].tasks) {
      if (one.name == task) return std::get<cost::Kernel>(one.work);
    }
  }
  throw std::out_of_range("no such task");
}

}  // namespace

TEST_CASE("queries of a slice see the keys of all slices up to it") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"token_slices": [8, 7, 5]})");
  const std::vector<std::int64_t> sizes = {8, 7, 5};
  std::int64_t end = 0;
  for (int k = 0; k < 3; ++k) {
    end += sizes[k];
    const cost::Kernel scores = kernel_of_slice(program, k, CellPass::forward, "attention.scores");
    CHECK(scores.m == sizes[k]);
    CHECK(scores.n == end);
    const cost::Kernel context =
        kernel_of_slice(program, k, CellPass::forward, "attention.context");
    CHECK(context.m == sizes[k]);
    CHECK(context.k == end);
    const cost::Kernel fc1 = kernel_of_slice(program, k, CellPass::forward, "mlp.fc1");
    CHECK(fc1.m == 12 * sizes[k]);
    // Gradients of all keys that the slice saw.
    const cost::Kernel keys =
        kernel_of_slice(program, k, CellPass::backward, "attention.scores.B2");
    CHECK(keys.m * keys.n == end * 48 / 8);
  }
}

TEST_CASE("all slices together take the products of the whole, and causal ones in part") {
  // Scores and context of slice k: 2 * 2 b h t_k e_k FLOPs, e_k the tokens up to its end.
  const model::Graph graph = model::gpt(small_gpt);
  const Flops whole = hardware_flops(lowered(graph, "{}"));
  const Flops sliced = hardware_flops(lowered(graph, R"({"token_slices": [8, 7, 5]})"));
  const double square = 20 * 20;
  const double steps = 8 * 8 + 7 * 15 + 5 * 20;
  const double layers = 4;
  const double saved = layers * 3 * 2 * 2.0 * 12 * 48 * (square - steps);  // forward, B twice
  CHECK(whole.value - sliced.value == saved);
}

TEST_CASE("slices run forward in order and backward in reverse") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program =
      lowered(graph, R"({"pipeline": 2, "schedule": "gpipe", "token_slices": [12, 8]})", 2);
  for (const program::Sequence& sequence : program.sequences) {
    std::string order;
    placement::Cell last{.stage = -1};
    for (const program::Call& call : sequence.calls) {
      if (call.segment < 0 || call.cell == last || lowering::ends_iteration(program, call))
        continue;
      last = call.cell;
      order += to_text(call.cell.pass) + std::to_string(call.cell.micro_batch) + "." +
               std::to_string(call.cell.slice) + " ";
    }
    CHECK(order == "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 ");
  }
}

TEST_CASE("a slice's activations cross from stage to stage, in all as many bytes as the whole") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program =
      lowered(graph, R"({"pipeline": 2, "schedule": "gpipe", "token_slices": [12, 8]})");
  const std::vector<program::Collective> sent =
      lowering::collectives(program, 0, program::Stream::send_forward);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].payload == 12.0 * 12 * 48 * 2_B);
  CHECK(sent[1].payload == 12.0 * 8 * 48 * 2_B);
}

TEST_CASE("slices that do not add up, models without a causal mask and recomputation are refused") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& strategy) {
    return lowering::refusal([&] { lowered(graph, strategy); });
  };
  CHECK_THAT(refused(R"({"token_slices": [8, 8]})"), ContainsSubstring("add up to 20 tokens"));
  CHECK_THAT(refused(R"({"token_slices": [12, 8], "recompute": "full"})"),
             ContainsSubstring("no recomputation"));
}

}  // namespace stratagem::strategies::token_slices_test

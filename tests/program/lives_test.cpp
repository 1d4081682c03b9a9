// What allocates and frees buffers, and that streams wait for each other wherever one needs what
// another makes.
#include "model/zoo/evoformer.hpp"
#include "tests/lowering/replay.hpp"
#include "tests/lowering/variants.hpp"

namespace stratagem::strategies {
Strategy data_parallel();  // a row of the table
}

namespace stratagem::program::lives_test {

using lowering::check_program;
using lowering::lower;
using lowering::lowered;
using lowering::plain_stack;
using lowering::small_gpt;
using placement::CellPass;
using strategies::Plan;

namespace {

/// Every buffer is freed, whichever cells use it.
void check_all_freed(const Program& program) {
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    const lowering::Replay replay(program, static_cast<int>(s));
    CHECK(replay.alive().empty());
    for (const auto& [category, bytes] : replay.balance()) CHECK(bytes == 0);
  }
}

}  // namespace

TEST_CASE("buffers are allocated once, live and complete when used, and freed in the end") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const lowering::Variant& variant : lowering::variants()) {
    INFO(variant.strategy << ", " << variant.micro_batches << " micro-batches");
    const Plan plan = lowering::plan_of(graph, variant.strategy, variant.micro_batches);
    check_program(plan.graph(), lower(plan, plain_stack()));
  }
}

TEST_CASE("what B and W cells read of each other and of recomputed groups lives as long") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string options :
       {R"("recompute": "none")", R"("recompute": "selective")", R"("recompute": "full")",
        R"("coshard": 4)", R"("tensor": 2, "coshard": 2)"}) {
    INFO(options);
    check_all_freed(
        lowered(graph, "{\"pipeline\": 2, \"schedule\": \"zb-h1\", " + options + "}", 4));
  }
  Plan plan(graph);  // a group that runs again in W alone
  plan.split_backward(0, 0);
  plan.recompute({lowering::operator_named(graph, "layers.0.mlp.gelu"),
                  lowering::operator_named(graph, "layers.0.mlp.fc2")});
  plan.chain({{0, 0, CellPass::forward}, {0, 0, CellPass::backward}, {0, 0, CellPass::weight}});
  check_all_freed(lower(plan, plain_stack()));
}

TEST_CASE("buffers of mixtures of experts and of Evoformers live as long, too") {
  model::GptConfig config = small_gpt;
  config.experts.count = 4;
  config.experts.per_token = 2;
  config.experts.every = 2;
  config.tied = false;
  const model::Graph mixture = model::gpt(config);
  for (const std::string strategy :
       {R"({})", R"({"data": 4, "expert": 2, "tensor": 2, "sequence_parallel": true})",
        R"({"data": 2, "expert": 2, "pipeline": 2, "recompute": "full"})"}) {
    INFO(strategy);
    check_program(mixture, lowered(mixture, strategy, 2));
  }
  const model::Graph folding =
      model::evoformer({.layers = 4, .msa_rows = 8, .residues = 16, .batch = 2});
  for (const std::string strategy :
       {R"({})", R"({"dap": 4, "data": 2})", R"({"dap": 2, "recompute": "full", "pipeline": 2})",
        R"({"tensor": 2})"}) {
    INFO(strategy);
    check_program(folding, lowered(folding, strategy, 2));
  }
}

TEST_CASE("gradients are summed after the backward cell that runs last, whichever that is") {
  // Micro-batches go back in the other order than they came: B0 is the last to add to the
  // gradients.
  const model::Graph graph = model::gpt(small_gpt);
  Plan plan(graph);
  strategies::data_parallel().apply(plan,
                                    {.data = 2, .gradients = {.overlap = true, .bucket = 16_KiB}});
  plan.micro_batches = 2;
  plan.order({0, 0, CellPass::forward}, {0, 1, CellPass::forward});
  plan.order({0, 1, CellPass::forward}, {0, 1, CellPass::backward});
  plan.order({0, 1, CellPass::backward}, {0, 0, CellPass::backward});
  const Program program = lower(plan, plain_stack());
  REQUIRE(lowering::cells_of(program, 0) == "F0 F1 B1 B0");
  check_program(graph, program);
}

TEST_CASE("a stage keeps the input of every micro-batch in flight") {
  // GPipe: all m. 1F1B: min(m, p - s) at stage s.
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string recompute : {"none", "full"}) {
    for (const std::string schedule : {"gpipe", "1f1b"}) {
      for (const int m : {2, 6}) {
        const std::string options =
            "\"recompute\": \"" + recompute + "\", \"schedule\": \"" + schedule + "\"";
        const Program program = lowered(graph, "{\"pipeline\": 4, " + options + "}", m);
        for (int stage = 0; stage < 4; ++stage) {
          INFO(options << ", m " << m << ", stage " << stage);
          // Stage s has layer s; its input is the first operand of its first operator, the norm.
          const model::Operator& norm = graph.operators[graph.segments[stage + 1].forward.front()];
          const lowering::Replay replay(program, stage);
          CHECK(replay.most(norm.inputs[0]) == (schedule == "gpipe" ? m : std::min(m, 4 - stage)));
        }
      }
    }
  }
}

}  // namespace stratagem::program::lives_test

// Plans with a block for every device run to their end: nobody waits for ever.
#include "sim/engine.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/sanitized.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/priced_by_name.hpp"

namespace stratagem::sim {

namespace {

/// How many iterations end on a network that takes no time, every task taking a unit.
std::size_t iterations_of(const strategies::Plan& plan) {
  const program::Program program = lowering::lower(plan, lowering::plain_stack());
  const auto devices = static_cast<int>(program.devices.size());
  const Folding folding = fold(program, instant_cluster(devices), ideal_network(), false);
  const Prices prices =
      price(program, [](const program::Task&) { return Price{.device = {1000}}; });
  return run(program, folding, prices, 3).iteration_ends.size();
}

}  // namespace

TEST_CASE("operators on four, two and three devices run to the end") {
  const model::Graph graph = lowering::product_chain(3);
  for (const int micro_batches : {1, 3}) {
    strategies::Plan plan = lowering::four_two_three(graph);
    plan.micro_batches = micro_batches;
    plan.chain({{0, 0, placement::CellPass::forward}, {0, 0, placement::CellPass::backward}});
    for (int m = 1; m < micro_batches; ++m) {
      plan.chain({{0, m - 1, placement::CellPass::backward}, {0, m, placement::CellPass::forward}});
    }
    CHECK(iterations_of(plan) == 3);
  }
}

TEST_CASE("an uneven vocabulary on eight devices runs to the end") {
  model::GptConfig config = lowering::small_gpt;
  config.vocabulary = 50257;
  const model::Graph graph = model::gpt(config);
  CHECK(iterations_of(lowering::uneven_words(graph, 8)) == 3);
}

TEST_CASE("whatever the parts and devices, nobody waits for ever") {
  const model::Graph graph = model::gpt(lowering::tiny_gpt);
  for (unsigned seed = 0; seed < 40; seed += stride(5)) {
    INFO("seed " << seed);
    strategies::Plan plan = lowering::random_plan(graph, 5, seed);
    plan.gradients = {.overlap = seed % 2 == 0, .bucket = 1_KiB};
    CHECK(iterations_of(plan) == 3);
    CHECK(iterations_of(lowering::random_pipeline(graph, 5, seed)) == 3);
  }
}

TEST_CASE("uniform strategies written as lists run to the end") {
  const model::Graph graph = model::gpt(lowering::small_gpt);
  for (const std::string strategy :
       {R"({"data": 2, "tensor": 2, "overlap_gradients": true, "bucket": "16 KiB"})",
        R"({"pipeline": 2, "tensor": 2, "schedule": "1f1b", "recompute": "full"})",
        R"({"pipeline": 4, "schedule": "chimera"})", R"({"pipeline": 2, "schedule": "zb-h1"})"}) {
    INFO(strategy);
    const strategies::Plan plan = lowering::plan_of(graph, strategy, 4);
    CHECK(iterations_of(lowering::with_lists(plan)) == 3);
  }
}

TEST_CASE("a uniform plan takes as long where its devices are listed, whatever the stack fuses") {
  const model::Graph graph = model::gpt(lowering::small_gpt);
  cost::Stack stack = lowering::plain_stack();
  stack.rules = {
      cost::Fusion{{"bias_add", "gelu"}}, cost::Fusion{{"dropout", "add"}},
      cost::CollectiveBeside{cost::CollectiveKind::all_reduce, true, model::Pass::weight_gradient}};
  for (const std::string strategy :
       {R"({"data": 2})", R"({"tensor": 2})", R"({"tensor": 2, "recompute": "full"})",
        R"({"tensor": 4, "sequence_parallel": true})"}) {
    INFO(strategy);
    const strategies::Plan plan = lowering::plan_of(graph, strategy, 2);
    const Timeline uniform = played(lowering::lower(plan, stack));
    const Timeline listed = played(lowering::lower(lowering::with_lists(plan), stack));
    CHECK(listed.iteration_ends == uniform.iteration_ends);
  }
}

}  // namespace stratagem::sim

// What a stack's rules change of a program changes no value: gradients and losses of three
// iterations are those of one device.
#include <string>

#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute::stack_agreement_test {
namespace {

constexpr int micro_batches = 4;

const model::Graph& tiny_gpt() {
  static const model::Graph graph = model::gpt(
      {.layers = 4, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4});
  return graph;
}

const Trained& reference() {
  static const Trained trained = train<double>(planned(tiny_gpt(), "{}", micro_batches));
  return trained;
}

/// Of gradients and losses, from those of one device.
double distance_with(const cost::Stack& stack, const std::string& strategy) {
  const strategies::Plan plan = lowering::plan_of(tiny_gpt(), strategy, micro_batches);
  return distance(train<double>(plan.graph(), lowering::lower(plan, stack, {}), micro_batches),
                  reference());
}

TEST_CASE("what a framework does beside the collectives of shards changes no value") {
  cost::Stack stack = lowering::plain_stack();
  stack.rules = {cost::ShardCollectives{
      .by_weight = true, .gathers_wait = true, .kernels_per_rank = 2, .of_one_rank = true}};
  for (const char* strategy :
       {R"({"zero": 3, "data": 2})", R"({"zero": 3, "tensor": 2})",
        R"({"zero": {"stage": 3, "prefetch": 2, "whole_below": 300}, "data": 2, "tensor": 2})"}) {
    CAPTURE(strategy);
    CHECK(distance_with(stack, strategy) <= 1e-9);
  }
}

TEST_CASE("stages that send shares and gather them train as on one device") {
  cost::Stack stack = lowering::plain_stack();
  stack.rules = {cost::StageShares::activations, cost::StageShares::gradients};
  if (GENERATE(false, true)) stack.rules.emplace_back(cost::Lifetime::sent_until_gradients);
  for (const char* strategy :
       {R"({"pipeline": 2, "tensor": 2, "schedule": "1f1b"})",
        R"({"pipeline": 2, "tensor": 4, "schedule": "gpipe"})",
        R"({"pipeline": 2, "tensor": 2, "data": 2, "schedule": "1f1b", "recompute": "full"})",
        R"({"pipeline": 2, "tensor": 2, "schedule": "interleaved", "chunks": 2})",
        R"({"pipeline": 2, "tensor": 2, "schedule": "zb-v"})",
        R"({"pipeline": 4, "tensor": 2, "schedule": "1f1b"})",
        R"({"pipeline": 2, "tensor": 2, "schedule": "chimera"})",
        R"({"pipeline": 2, "tensor": 2, "context": 2, "schedule": "1f1b"})"}) {
    CAPTURE(strategy);
    const strategies::Plan plan = lowering::plan_of(tiny_gpt(), strategy, micro_batches);
    const program::Program program = lowering::lower(plan, stack, {});
    CHECK(to_text(program).find("gather layers") != std::string::npos);
    CHECK(distance(train<double>(plan.graph(), program, micro_batches), reference()) <= 1e-9);
  }
}

TEST_CASE("collectives beside computations change no value") {
  using cost::CollectiveKind;
  using model::Pass;
  cost::Stack stack = lowering::plain_stack();
  using Beside = cost::CollectiveBeside;
  stack.rules = {Beside{CollectiveKind::all_reduce, true, Pass::weight_gradient},
                 Beside{CollectiveKind::reduce_scatter, true, Pass::weight_gradient},
                 Beside{CollectiveKind::all_gather, false, Pass::input_gradient}};
  for (const char* strategy :
       {R"({"tensor": 2})", R"({"tensor": 4, "sequence_parallel": true})",
        R"({"tensor": 2, "sequence_parallel": true, "recompute": "selective"})"}) {
    CAPTURE(strategy);
    CHECK(distance_with(stack, strategy) <= 1e-9);
  }
}

TEST_CASE("gathers in parts after a step leave all weights as they are on one device") {
  cost::Stack stack = lowering::plain_stack();
  stack.rules = {cost::StepGathers{.bucket = 1000_B, .kernels_per_rank = 1}};
  for (const char* strategy :
       {R"({"zero": 1, "data": 2})", R"({"zero": 2, "data": 2, "tensor": 2})"}) {
    CAPTURE(strategy);
    CHECK(distance_with(stack, strategy) <= 1e-9);
  }
}

TEST_CASE("ranks that sum up whole gradients step their shares as one device steps all") {
  cost::Stack stack = lowering::plain_stack();
  stack.rules = {cost::StepSums::whole_gradients};
  for (const char* strategy :
       {R"({"zero": 1, "data": 2})", R"({"zero": 1, "data": 4, "tensor": 2})",
        R"({"zero": 2, "data": 2, "tensor": 2})",
        R"({"zero": {"stage": 1, "ranks": 2}, "data": 4, "bucket": "1 KB"})",
        R"({"zero": 1, "data": 2, "pipeline": 2, "schedule": "1f1b"})"}) {
    CAPTURE(strategy);
    CHECK(distance_with(stack, strategy) <= 1e-9);
  }
}

}  // namespace
}  // namespace stratagem::execute::stack_agreement_test

// All of a GPU's engine but CUDA: which kernel with which operands, where parts lie, what is
// copied. Kernels and memory are those of device_on_host.cpp; memory begins as what is no number.
#include "execute/gpu/gpu_engine.hpp"

#include "execute/gpu/operators.hpp"
#include "tests/catch.hpp"
#include "tests/execute/gpu/nccl_on_host.hpp"
#include "tests/execute/held_to_fp32.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::execute {
namespace {

using kernels::BFloat16;
using kernels::Half;

/// Two trained keys and values before the tokens', all else frozen.
const model::Graph& prefix_tuned_gpt() {
  static const model::Graph graph = model::gpt({.layers = 2,
                                                .hidden = 64,
                                                .heads = 4,
                                                .sequence = 16,
                                                .vocabulary = 48,
                                                .batch = 4,
                                                .prefix = 2});
  return graph;
}

template <typename T>
void check(const model::Graph& graph, const std::string& strategy) {
  const Agreement agreement = held_to_fp32<T>(graph, strategy, [] { return gpu_engine<T>(0); });
  CAPTURE(strategy, sizeof(T), agreement.worst, agreement.gradients, agreement.losses);
  CHECK(agrees<T>(agreement));
}

TEST_CASE("what a GPU would be told to do is what one device does, in three types") {
  std::size_t number = 0;
  const auto looked_at = [&] { return number++ % stride(8) == 0; };
  for (const model::Graph* graph : {&small_gpt(), &small_llama()}) {
    for (const std::string& strategy : small_strategies) {
      if (looked_at()) check<float>(*graph, strategy);
      if (looked_at()) check<Half>(*graph, strategy);
      if (looked_at()) check<BFloat16>(*graph, strategy);
    }
  }
}

TEST_CASE("fused attention and its three gradients, on heads that lie in rows of tokens") {
  for (const model::Graph& graph : small_fused()) {
    for (const std::string& strategy : fused_strategies) {
      if (!sanitized) check<float>(graph, strategy);
      if (!sanitized) check<Half>(graph, strategy);
      check<BFloat16>(graph, strategy);
    }
  }
}

TEST_CASE("a GPU computes every kind of operator of which no row says that it does not") {
  for (const Execution& row : executions()) {
    INFO(row.kind);
    CHECK(gpu::computes(row.kind) == (row.not_at_all.empty() && row.not_on_gpu.empty()));
  }
}

TEST_CASE("heads that no kernel on GPUs knows are refused before anything runs") {
  model::GptConfig config = small_gpt_config();
  config.fused_attention = true;
  config.hidden = 1152;  // 4 heads of 288
  const model::Graph graph = model::gpt(config);
  const Planned plan = planned(graph, "{}", 2);
  CHECK_THAT(
      refusal(plan.program, plan.plan.graph(), Backend::cuda),
      ContainsSubstring("fused attention on heads of 288, of which kernels on GPUs know up"));
  CHECK(refusal(plan.program, plan.plan.graph(), Backend::cpu).empty());
}

TEST_CASE("prefixes, on one GPU and on two") {
  for (const char* strategy : {"{}", R"({"data": 2})", R"({"tensor": 2})"}) {
    check<float>(prefix_tuned_gpt(), strategy);
    check<BFloat16>(prefix_tuned_gpt(), strategy);
  }
}

TEST_CASE("parts of parts: sequences, weights cut by co-shard, gathered and reduced shards") {
  for (const char* strategy :
       {R"({"context": 2})", R"({"coshard": 2})", R"({"zero": 2, "data": 2})",
        R"({"pipeline": 2, "schedule": "zb-h1"})", R"({"tensor": 2, "data": 2})"})
    check<float>(small_gpt(), strategy);
}

template <typename T>
void check_with_nccl(const model::Graph& graph, const std::string& strategy, bool moves) {
  kernels::NcclOnHost& nccl = kernels::nccl_on_host();
  nccl.moved = 0;
  const Agreement agreement =
      held_to_fp32<T>(graph, strategy, [] { return gpu_engine<T>(0, kernels::GivingUp{}); });
  CAPTURE(strategy, sizeof(T), agreement.worst, agreement.gradients, agreement.losses);
  CHECK(agrees<T>(agreement));
  CHECK((nccl.moved > 0) == moves);
}

TEST_CASE("collectives whose messages stay on GPUs leave the same") {
  for (const char* strategy :
       {R"({"data": 2})", R"({"tensor": 2})", R"({"tensor": 2, "sequence_parallel": true})",
        R"({"zero": 1, "data": 2})", R"({"zero": 3, "data": 2})", R"({"context": 2})",
        R"({"pipeline": 2, "schedule": "1f1b", "data": 2})"}) {
    check_with_nccl<float>(small_gpt(), strategy, true);
    check_with_nccl<Half>(small_gpt(), strategy, true);
  }
  check_with_nccl<BFloat16>(small_llama(), R"({"tensor": 2, "data": 2})", true);
  // One rank alone has nobody to ask.
  check_with_nccl<float>(small_gpt(), "{}", false);
}

TEST_CASE("what NCCL cannot do ends the ranks with its words") {
  kernels::NcclOnHost& nccl = kernels::nccl_on_host();
  for (const int number : {0, 7}) {
    nccl.moved = 0;
    nccl.fails_at = number;
    CHECK_THROWS_WITH(held_to_fp32<float>(small_gpt(), R"({"data": 2})",
                                          [] { return gpu_engine<float>(0, kernels::GivingUp{}); }),
                      ContainsSubstring("unhandled system error"));
  }
  nccl.fails_at = -1;
}

TEST_CASE("tasks have the times of the GPU, one after another") {
  const Planned plan = planned(small_gpt(), "{}", 2);
  const auto world = kernels::lone();
  Interpreter<float> rank(plan.program, plan.plan.graph(), {.micro_batches = 2}, *world,
                          gpu_engine<float>(0));
  for (int i = 0; i < 2; ++i) rank.iterate();
  const Recording& recording = rank.recording();
  REQUIRE(recording.begins().size() > 10);
  double last = 0;
  for (std::size_t task = 0; task < recording.begins().size(); ++task) {
    CHECK(recording.begins()[task] >= last);
    CHECK(recording.ends()[task] >= recording.begins()[task]);
    last = recording.ends()[task];
  }
}

TEST_CASE("a parameter that is no number is named on a GPU, too") {
  const Planned plan = planned(small_gpt(), "{}", 2);
  const auto world = kernels::lone();
  Interpreter<float> rank(plan.program, plan.plan.graph(),
                          {.micro_batches = 2, .finds_faults = true}, *world, gpu_engine<float>(0));
  const auto found =
      std::ranges::find(plan.plan.graph().tensors, "layers.1.mlp_norm.scale", &model::Tensor::name);
  const auto id = static_cast<model::TensorId>(found - plan.plan.graph().tensors.begin());
  rank.parameter(id).data[0] = std::numeric_limits<float>::infinity();  // the host's, here
  CHECK_THROWS_WITH(rank.iterate(), ContainsSubstring("reading parameter layers.1.mlp_norm.scale"));
}

}  // namespace
}  // namespace stratagem::execute

// What shipped stacks say of messages between tensor ranks and between stages, held to what those
// versions of the frameworks do: in closed form, through the simulator.
#include <filesystem>
#include <numeric>
#include <string>
#include <tuple>

#include "cost/collectives.hpp"
#include "cost/stack.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::shipped_stacks_test {
namespace {

constexpr int layers = 4;
constexpr int micro_batches = 3;
constexpr Bytes activation = 2048.0 * 8192 * 2_B;  // s*h of one sample, in two bytes

/// A GPT of 8192 by 4 layers on the first GPUs of a DGX A100, or of two.
study::Run on_a100s(const std::string& stack, const std::string& precision, int gpus,
                    const std::string& strategy) {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  const TemporaryFolder folder;
  folder.write("a.json", R"({
    "question": "What do ranks send, and what waits for it?",
    "runs": [{
      "name": "run",
      "model": {"family": "gpt", "layers": 4, "hidden": 8192, "heads": 64, "sequence": 2048,
                "vocabulary": 51200},
      "cluster": {"preset": "dgx-a100", "gpus": )" +
                             std::to_string(gpus) + R"(},
      "profile": ")" + shipped +
                             R"(/profiles/a100-sxm4-80gb.json",
      "stack": ")" + shipped +
                             "/stacks/" + stack + R"(.json",
      "training": {"global_batch": 3, "micro_batch": 1, "precision": ")" +
                             precision + R"(", "optimizer": "adam"},
      "strategy": )" + strategy +
                             "}]}");
  return study::read_scenario((folder.path() / "a.json").string()).runs.front();
}

sim::Metrics simulated(const study::Run& run) { return *study::simulate(run, {}).outcome.metrics; }

}  // namespace

TEST_CASE(
    "versions that start the all-reduce of an input gradient before the other product hide it") {
  // Every micro-batch sums the input gradients of two column-split products a layer and of the
  // logits. Each product for a weight gradient takes longer than such a sum, which is hidden.
  for (const auto& [stack, precision, hides] :
       {std::tuple{"megatron-lm-2021", "fp16", false}, std::tuple{"megatron-lm-2022", "fp16", true},
        std::tuple{"megatron-core-te", "bf16-fp32-gradients", true}}) {
    INFO(stack);
    study::Run run = on_a100s(stack, precision, 8, R"({"tensor": 8})");
    run.profile.collective.compute_slowdown = std::nullopt;  // what computes beside it is no slower
    std::vector<int> ranks(8);
    std::iota(ranks.begin(), ranks.end(), 0);
    cost::Collectives collectives(run.cluster, run.profile.collective, run.stack.nccl);
    const Seconds sum = collectives.alone(
        collectives.route(cost::CollectiveKind::all_reduce, ranks, activation), activation);
    const Seconds beside = simulated(run).iteration_time;
    std::erase_if(run.stack.rules, [](const cost::Rule& rule) {
      return std::holds_alternative<cost::CollectiveBeside>(rule);
    });
    const Seconds saved = simulated(run).iteration_time - beside;
    if (hides) {
      CHECK(close(saved, micro_batches * (2 * layers + 1) * sum, 0.01));
    } else {
      CHECK(saved == Seconds{});
    }
  }
}

TEST_CASE("at most two scalars of a shipped stack are fitted") {
  int stacks = 0;
  for (const auto& file : std::filesystem::directory_iterator("scenarios/stacks")) {
    if (file.path().extension() != ".json") continue;
    CAPTURE(file.path());
    const cost::Stack stack = cost::read_stack(file.path().string());
    const auto fitted = [](const cost::Constant<double>& scalar) {
      return scalar.provenance == cost::Provenance::fitted ? 1 : 0;
    };
    CHECK(fitted(stack.slowdown) + fitted(stack.host_factor) +
              (stack.product_slowdown ? fitted(*stack.product_slowdown) : 0) <=
          2);
    ++stacks;
  }
  CHECK(stacks > 10);
}

TEST_CASE("a stack that needs many kernels for a GPT's softmax needs them for a BERT's") {
  int several = 0;
  for (const auto& file : std::filesystem::directory_iterator("scenarios/stacks")) {
    if (file.path().extension() != ".json") continue;
    CAPTURE(file.path());
    const cost::Stack stack = cost::read_stack(file.path().string());
    for (const std::string pass : {"", ".B"}) {
      const auto launches = [&](const std::string& kind) {
        return cost::rule_about(stack, &cost::OperatorKernels::of, kind + pass).launches;
      };
      CHECK(launches("masked_softmax") == launches("scaled_softmax"));
      several += launches("scaled_softmax") > 1 ? 1 : 0;
    }
  }
  CHECK(several >= 6);
}

TEST_CASE(
    "tensor ranks send a share each between stages where that version of the framework does") {
  // Each stage of two sends one activation or one gradient for every micro-batch.
  for (const auto& [stack, precision, shares] :
       {std::tuple{"megatron-2020", "fp16", 1}, std::tuple{"megatron-lm-2021", "fp16", 8},
        std::tuple{"megatron-lm-2022", "fp16", 8}, std::tuple{"megatron-deepspeed-fp16", "fp16", 8},
        std::tuple{"megatron-core-te", "bf16-fp32-gradients", 1}}) {
    INFO(stack);
    const study::Run run = on_a100s(stack, precision, 16, R"({"tensor": 8, "pipeline": 2})");
    CHECK(simulated(run).communication.at("send") ==
          micro_batches / static_cast<double>(shares) * activation);
  }
}

}  // namespace stratagem::shipped_stacks_test

// Stack files: what they may say and what they inherit.
#include "cost/stack.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/input_error.hpp"
#include "tests/catch.hpp"

using namespace stratagem;

namespace {

const char* const whole = R"({
  "name": "whole", "source": "made up", "precisions": ["fp16"],
  "operators": { "gelu": { "kernels": 2, "extra_passes": 1.5, "because": "so" } },
  "fusions": [["bias_add", "gelu"]],
  "gradient_accumulation": { "kernels": 1, "extra_passes": 3 },
  "optimizer": { "kernels": 3, "extra_traffic": "6 B", "synchronizations": 1,
    "extra_states": { "master gradient": "4 B" } },
  "slowdown": { "value": 1.5, "provenance": "fitted", "source": "one run" },
  "host_factor": { "value": 1, "provenance": "assumed", "source": "nothing better" } })";

/// A folder of its own for stack files, whatever other tests run beside this one.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("stratagem_stack_test_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

}  // namespace

TEST_CASE("a stack says what it says, and one kernel without extra passes for the rest") {
  const Folder folder;
  const cost::Stack stack = cost::read_stack(folder.write("whole.json", whole));
  CHECK(cost::facts_for(stack, "gelu").kernels == 2);
  CHECK(cost::facts_for(stack, "gelu").extra_passes == 1.5);
  CHECK(cost::facts_for(stack, "dropout").kernels == 1);
  CHECK(cost::facts_for(stack, "dropout").extra_passes == 0);
  CHECK(stack.fusions == std::vector<std::vector<std::string>>{{"bias_add", "gelu"}});
  CHECK(stack.optimizer.extra_states.at("master gradient") == 4_B);
  CHECK(stack.slowdown.provenance == cost::Provenance::fitted);
}

TEST_CASE("a stack on a base states only what differs") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  const cost::Stack stack = cost::read_stack(folder.write("variant.json", R"({
    "name": "variant", "base": "whole", "source": "made up",
    "host_factor": { "value": 0.5, "provenance": "assumed", "source": "a guess" } })"));
  CHECK(stack.name == "variant");
  CHECK(stack.host_factor.value == 0.5);
  CHECK(stack.slowdown.value == 1.5);
  CHECK(cost::facts_for(stack, "gelu").kernels == 2);
}

TEST_CASE("a base may have a base; what stands nearer counts, and no circle is followed") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  static_cast<void>(folder.write("middle.json", R"({ "name": "middle", "base": "whole",
    "source": "x", "fusions": [], "gradients": "freed" })"));
  const std::string outer = folder.write("outer.json", R"({ "name": "outer", "base": "middle",
    "source": "x", "gradients": "kept" })");
  const cost::Stack stack = cost::read_stack(outer);
  CHECK(stack.name == "outer");
  CHECK(stack.fusions.empty());
  CHECK_FALSE(stack.frees_gradients);
  CHECK(cost::facts_for(stack, "gelu").kernels == 2);
  static_cast<void>(folder.write("middle.json", R"({ "name": "middle", "base": "outer",
    "source": "x" })"));
  CHECK_THROWS_WITH(cost::read_stack(outer), ContainsSubstring("/base: expected at most 8"));
}

TEST_CASE("a stack on a base that names an NCCL may have none") {
  const Folder folder;
  const std::string with_nccl = std::string(whole).replace(std::string(whole).find("\"operators\""),
                                                           0, R"("nccl": "2.18.6", )");
  CHECK(cost::read_stack(folder.write("whole.json", with_nccl)).nccl == "2.18.6");
  const std::string variant = R"({ "name": "variant", "base": "whole", "source": "x", "nccl": ")";
  CHECK(cost::read_stack(folder.write("same.json", R"({ "name": "variant", "base": "whole",
    "source": "x" })"))
            .nccl == "2.18.6");
  CHECK(cost::read_stack(folder.write("none.json", variant + "none\" }")).nccl.empty());
  CHECK_THROWS_AS(cost::read_stack(folder.write("nothing.json", variant + "\" }")), InputError);
}

TEST_CASE("facts that no model can show are refused") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  const auto refused = [&](const std::string& fact, const std::string& path) {
    INFO(fact);
    const std::string file = folder.write(
        "variant.json", R"({ "name": "variant", "base": "whole", "source": "x", )" + fact + " }");
    CHECK_THROWS_WITH(cost::read_stack(file), ContainsSubstring("variant.json: " + path));
  };
  // Activations have no weights, tokens no gradients, and a copy of a tensor in place has no
  // kernel. A causal softmax is looked up as masked_softmax.
  for (const std::string name : {"gelu.W", "embedding.B", "identity", "causal_softmax", "add.B",
                                 "optimizer_step", "bias_gradient"}) {
    refused(R"("operators": {")" + name + R"(": {"kernels": 2}})", "/operators/" + name);
  }
  // An addition draws no random numbers.
  refused(R"("gradient_accumulation": {"state_copies_before": 1})", "/gradient_accumulation/");
  refused(R"("kept_outputs": {"of": "gelu.B", "passes": 2})", "/kept_outputs/of");
}

TEST_CASE("a stack names the groups that have communicators, and whether hosts wait to gather") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  const auto variant = [&](const std::string& facts) {
    return cost::read_stack(folder.write(
        "variant.json",
        R"({ "name": "variant", "base": "whole", "source": "the test", )" + facts + " }"));
  };
  using Group = cost::RankGroup;
  const cost::Stack stack = variant(R"("communicators": {"groups": ["world", "pipeline", "world"]},
                                       "shard_collectives": {"by": "weight",
                                         "gathers": "waited for",
                                                             "kernels_per_rank": 2,
                                                             "of_one_rank": true},
                                       "step_gathers": {"bucket": "1 GB", "kernels_per_rank": 1},
                                       "kept_outputs": {"of": "exponential", "passes": 2},
                                       "stage_exchanges": "waited for",
                                       "host_waits": "each pass",
                                       "held_inputs": [{"of": "gelu", "until": "dropout"}])");
  CHECK(stack.communicators == std::vector{Group::world, Group::pipeline, Group::world});
  CHECK(stack.shard_collectives.by_weight);
  CHECK(stack.shard_collectives.gathers_wait);
  CHECK(stack.shard_collectives.kernels_per_rank == 2);
  CHECK(stack.shard_collectives.of_one_rank);
  CHECK(stack.step_gathers.bucket == 1_GB);
  CHECK(stack.step_gathers.kernels_per_rank == 1);
  CHECK(stack.kept_outputs.of == "exponential");
  CHECK(stack.kept_outputs.passes == 2);
  CHECK(stack.stage_exchanges == cost::StageExchanges::waited_for);
  CHECK(stack.host_waits == cost::HostWaits::each_pass);
  REQUIRE(stack.held_inputs.size() == 1);
  CHECK(stack.held_inputs.front().of == "gelu");
  CHECK(stack.held_inputs.front().until == "dropout");
  CHECK_THROWS_WITH(variant(R"("held_inputs": [{"of": "gelu", "until": "drop"}])"),
                    ContainsSubstring("/held_inputs/0/until"));
  CHECK_THROWS_WITH(variant(R"("held_inputs": [{"of": "gelu", "until": "gelu"}])"),
                    ContainsSubstring("/held_inputs/0/until"));
  const cost::Stack silent = variant(R"("nccl": "none")");
  CHECK(silent.host_waits == cost::HostWaits::each_micro_batch);
  CHECK(silent.stage_exchanges == cost::StageExchanges::queued);
  CHECK(silent.kept_outputs.passes == 0);
  CHECK(silent.step_gathers.bucket == 0_B);
  CHECK(variant(R"("host_waits": "each launch")").host_waits == cost::HostWaits::each_launch);
  CHECK(variant(R"("stage_exchanges": "read")").stage_exchanges == cost::StageExchanges::read);
  CHECK_THROWS_WITH(variant(R"("stage_exchanges": "described")"),
                    ContainsSubstring("/stage_exchanges"));
  CHECK_THROWS_WITH(variant(R"("kept_outputs": {"of": "drop", "passes": 2})"),
                    ContainsSubstring("/kept_outputs/of"));
  CHECK_THROWS_WITH(variant(R"("kept_outputs": {"of": "exponential", "passes": 0})"),
                    ContainsSubstring("/kept_outputs/passes"));
  for (const char* size : {"-1 GB", "0 B"}) {
    CHECK_THROWS_WITH(variant(R"("step_gathers": {"kernels_per_rank": 1, "bucket": ")" +
                              std::string(size) + "\"}"),
                      ContainsSubstring("/step_gathers/bucket"));
  }
  CHECK_THROWS_WITH(variant(R"("optimizer": {"step_copies": {"gradients": "1 TB"}})"),
                    ContainsSubstring("/optimizer/step_copies/gradients"));
  CHECK_FALSE(variant(R"("nccl": "none")").shard_collectives.of_one_rank);
  CHECK_FALSE(variant(R"("nccl": "none")").shard_collectives.gathers_wait);
  CHECK_THROWS_WITH(variant(R"("communicators": {"groups": ["expert"]})"),
                    ContainsSubstring("/communicators/groups/0"));
}

TEST_CASE("a stack says which collectives run beside which gradients, and over a base none") {
  const Folder folder;
  const std::string rule = R"({"kind": "all_reduce", "of": "input gradients",
                               "beside": "weight gradients", "because": "so"})";
  const auto over_whole = [&](const std::string& name, const std::string& base,
                              const std::string& facts) {
    return cost::read_stack(
        folder.write(name + ".json", R"({ "name": ")" + name + R"(", "base": ")" + base +
                                         R"(", "source": "the test", )" + facts + " }"));
  };
  static_cast<void>(folder.write("whole.json", whole));
  const cost::Stack stack =
      over_whole("some", "whole",
                 "\"collectives\": [" + rule + R"(, {"kind": "all_gather", "of": "activations",
                                                    "beside": "input gradients"}],
                    "stage_shares": {"of": ["gradients"], "because": "so"})");
  using cost::CollectiveKind;
  using model::Pass;
  CHECK(cost::beside(stack, CollectiveKind::all_reduce, true) == Pass::weight_gradient);
  CHECK(cost::beside(stack, CollectiveKind::all_gather, false) == Pass::input_gradient);
  CHECK(!cost::beside(stack, CollectiveKind::all_reduce, false));
  CHECK(!cost::beside(stack, CollectiveKind::all_gather, true));
  CHECK(!cost::beside(stack, CollectiveKind::reduce_scatter, true));
  CHECK(!stack.shares_activations);
  CHECK(stack.shares_gradients);
  const cost::Stack none =
      over_whole("none", "some", R"("collectives": [], "stage_shares": {"of": ["activations"]})");
  CHECK(none.collectives.empty());
  CHECK(none.shares_activations);
  CHECK(!none.shares_gradients);
  const auto refused = [&](const std::string& rules, const std::string& where) {
    CHECK_THROWS_WITH(over_whole("bad", "whole", "\"collectives\": [" + rules + "]"),
                      ContainsSubstring(where));
  };
  refused(R"({"kind": "send", "of": "activations", "beside": "input gradients"})",
          "/collectives/0/kind");
  refused(R"({"kind": "all_reduce", "of": "weights", "beside": "input gradients"})",
          "/collectives/0/of");
  refused(R"({"kind": "all_reduce", "of": "activations", "beside": "all"})",
          "/collectives/0/beside");
  refused(rule + ", " + rule, "/collectives/1");
  CHECK_THROWS_WITH(over_whole("bad", "whole", R"("stage_shares": {"of": ["weights"]})"),
                    ContainsSubstring("/stage_shares/of/0"));
}

TEST_CASE("a stack says how it takes memory; one that does not has no allocator of its own") {
  const Folder folder;
  const cost::MemoryFacts none = cost::read_stack(folder.write("whole.json", whole)).memory;
  CHECK(none.allocator == cost::MemoryFacts::Allocator::none);
  CHECK(!none.workspace);
  const auto with_memory = [&](const std::string& memory) {
    return cost::read_stack(folder.write("variant.json", R"({
      "name": "variant", "base": "whole", "source": "made up", "memory": )" +
                                                             memory + "}"))
        .memory;
  };
  const std::string workspace =
      R"("workspace": {"value": "8.125 MiB", "provenance": "published", "source": "nobody"})";
  const cost::MemoryFacts memory = with_memory(R"({"allocator": "expandable", )" + workspace +
                                               R"(, "workspace_from": "allocator"})");
  CHECK(memory.allocator == cost::MemoryFacts::Allocator::expandable);
  CHECK(memory.workspace->value == 8_MiB + 128_KiB);
  CHECK(memory.workspace_allocated);
  CHECK(with_memory(R"({"allocator": "caching"})").allocator ==
        cost::MemoryFacts::Allocator::caching);
  CHECK_THROWS_AS(with_memory(R"({"allocator": "cache"})"), InputError);
  CHECK_THROWS_AS(with_memory(R"({"allocator": "caching", )" + workspace + "}"), InputError);
  CHECK_THROWS_AS(with_memory(R"({"allocator": "caching", "rounding": 512})"), InputError);
}

TEST_CASE("unknown keys and missing facts of a stack are refused") {
  const Folder folder;
  std::string misspelt = whole;
  misspelt.replace(misspelt.find("fusions"), 7, "fusoins");
  CHECK_THROWS_AS(cost::read_stack(folder.write("misspelt.json", misspelt)), InputError);
  std::string poor = whole;
  poor.erase(poor.find("\"slowdown\""), poor.find("\"host_factor\"") - poor.find("\"slowdown\""));
  CHECK_THROWS_AS(cost::read_stack(folder.write("poor.json", poor)), InputError);
}

TEST_CASE("operators that no model has, and factors of zero and less, are refused") {
  const Folder folder;
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    try {
      static_cast<void>(cost::read_stack(folder.write("wrong.json", text)));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(refusal("\"gelu\": {", "\"gleu\": {"), ContainsSubstring("did you mean \"gelu\"?"));
  CHECK_THAT(refusal("[\"bias_add\", \"gelu\"]", "[\"bias_ad\", \"gelu\"]"),
             ContainsSubstring("/fusions/0/0"));
  CHECK_THAT(refusal("\"value\": 1.5", "\"value\": 0"), ContainsSubstring("/slowdown/value"));
  CHECK_THAT(refusal("\"value\": 1,", "\"value\": -1,"), ContainsSubstring("/host_factor/value"));
}

TEST_CASE("the slowdown stretches kernels but not copies to the host") {
  cost::Stack stack;
  stack.slowdown.value = 2;
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  cost::Kernel kernel;
  kernel.traffic = 1_GB;
  CHECK(cost::kernel_time(kernel, profile, stack) == 2 * cost::kernel_time(kernel, profile));
  kernel.kind = cost::KernelKind::host_copy;
  CHECK(cost::kernel_time(kernel, profile, stack) == cost::kernel_time(kernel, profile));
}

// Stack files: what they may say and what they inherit.
#include "cost/stack.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/input_error.hpp"
#include "cost/kernel_time.hpp"
#include "tests/catch.hpp"

using namespace stratagem;
using cost::Rule;

namespace {

const char* const whole = R"({
  "name": "whole", "source": "made up", "precisions": ["fp16"],
  "rules": [
    { "operator": "gelu", "launches": 2, "extra_passes": 1.5, "because": "so" },
    { "operator": "optimizer_step", "launches": 3, "extra_traffic": "6 B", "synchronizations": 1,
      "because": "so" },
    { "fuse": ["bias_add", "gelu"], "because": "so" },
    { "state": "master gradient", "bytes": "4 B", "with": "optimizer states", "because": "so" } ],
  "slowdown": { "value": 1.5, "provenance": "fitted", "source": "one run" },
  "host_factor": { "value": 1, "provenance": "assumed", "source": "nothing better" } })";

/// A function: of a constant the compiler computes the initial value, which takes it minutes.
std::vector<Rule> rules_of_whole() {
  return {cost::OperatorKernels{.of = "gelu", .launches = 2, .extra_passes = 1.5},
          cost::OperatorKernels{
              .of = "optimizer_step", .launches = 3, .extra_traffic = 6_B, .synchronizations = 1},
          cost::Fusion{{"bias_add", "gelu"}}, cost::ExtraState{"master gradient", 4_B}};
}

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
  /// The stack of a file `name` over `base`, with what else it says.
  [[nodiscard]] cost::Stack over(const std::string& base, const std::string& more,
                                 const std::string& name = "variant") const {
    return cost::read_stack(write(name + ".json", R"({ "name": ")" + name + R"(", "base": ")" +
                                                      base + R"(", "source": "the test", )" + more +
                                                      " }"));
  }
  /// The same over "whole", by its rules.
  [[nodiscard]] std::vector<Rule> rules(const std::string& list) const {
    static_cast<void>(write("whole.json", whole));
    return over("whole", "\"rules\": [" + list + "]").rules;
  }
};

}  // namespace

TEST_CASE("a stack says what its rules say, in their order") {
  const Folder folder;
  const cost::Stack stack = cost::read_stack(folder.write("whole.json", whole));
  CHECK(stack.rules == rules_of_whole());
  CHECK(stack.slowdown.provenance == cost::Provenance::fitted);
  CHECK(says(stack, cost::Fusion{{"bias_add", "gelu"}}));
  CHECK_FALSE(says(stack, cost::Fusion{{"gelu", "bias_add"}}));
  CHECK(cost::rule_about(stack, &cost::OperatorKernels::of, std::string("gelu")).launches == 2);
  CHECK(cost::rule_about(stack, &cost::OperatorKernels::of, std::string("dropout")) ==
        cost::OperatorKernels{});
  CHECK(cost::rule_of<cost::StepGathers>(stack) == cost::StepGathers{});
}

TEST_CASE("a stack on a base states only what differs") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  const cost::Stack stack = folder.over(
      "whole", R"("host_factor": { "value": 0.5, "provenance": "assumed", "source": "a guess" })");
  CHECK(stack.name == "variant");
  CHECK(stack.host_factor.value == 0.5);
  CHECK(stack.slowdown.value == 1.5);
  CHECK(stack.rules == rules_of_whole());
}

TEST_CASE("a rule takes the place of the base's about the same thing, and others come behind") {
  const Folder folder;
  std::vector<Rule> expected = rules_of_whole();
  expected[0] = cost::OperatorKernels{.of = "gelu", .launches = 5};  // as a whole, not key by key
  expected.emplace_back(cost::OperatorKernels{.of = "gelu.B", .launches = 7});
  expected.emplace_back(cost::Fusion{{"dropout", "add"}});
  CHECK(folder.rules(R"({"operator": "gelu.B", "launches": 7, "because": "so"},
                        {"fuse": ["dropout", "add"], "because": "so"},
                        {"operator": "gelu", "launches": 5, "because": "so"})") == expected);
  CHECK_THROWS_WITH(folder.rules(R"({"operator": "add", "because": "so"},
                                    {"operator": "add", "launches": 2, "because": "so"})"),
                    ContainsSubstring("variant.json: /rules/1: expected one rule about operator"));
}

TEST_CASE("a rule of some precisions holds with these and their variants, before others") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  const auto launches = [](cost::Stack stack, const char* precision) {
    cost::choose_rules(stack, cost::precision_named(precision));
    return cost::rule_about(stack, &cost::OperatorKernels::of, std::string("gelu")).launches;
  };
  const std::string rule = R"({ "operator": "gelu", "precisions": ["bf16", "mxfp8"],
                                "launches": 7, "because": "so" })";
  const cost::Stack stack = folder.over("whole", "\"rules\": [" + rule + "]");
  CHECK(stack.rules == rules_of_whole());
  for (const char* precision : {"bf16", "bf16-fp32-gradients", "mxfp8", "mxfp8-fp32-gradients"})
    CHECK(launches(stack, precision) == 7);
  for (const char* precision : {"fp16", "fp8", "nvfp4"}) CHECK(launches(stack, precision) == 2);
  // One that a stack over it has of the same precisions takes its place.
  static_cast<void>(folder.over("whole", "\"rules\": [" + rule + "]", "first"));
  const cost::Stack second = folder.over("first", R"("rules": [{ "operator": "gelu",
      "precisions": ["mxfp8", "bf16"], "launches": 9, "because": "so" }])",
                                         "second");
  CHECK(launches(second, "mxfp8") == 9);
  // One of some of them counts for these, in whatever order they stand.
  const cost::Stack third = folder.over("second", R"("rules": [{ "operator": "gelu",
      "precisions": ["mxfp8", "nvfp4"], "launches": 11, "because": "so" }])",
                                        "third");
  CHECK(launches(third, "mxfp8") == 11);
  CHECK(launches(third, "nvfp4") == 11);
  CHECK(launches(third, "bf16") == 9);
  CHECK_THROWS_AS(folder.rules(rule + R"(, { "operator": "gelu",
      "precisions": ["bf16-fp32-gradients"], "launches": 9, "because": "so" })"),
                  InputError);
  CHECK(launches(second, "fp8") == 2);
  CHECK_THROWS_AS(folder.rules(R"({ "operator": "gelu", "precisions": ["fp9"], "because": "so" })"),
                  InputError);
  CHECK_THROWS_AS(folder.rules(R"({ "operator": "gelu", "precisions": [], "because": "so" })"),
                  InputError);
}

TEST_CASE("rules about some operators of a kind stand beside the rule about all") {
  const Folder folder;
  const auto rules = folder.rules(R"(
      { "operator": "gelu", "named": "mlp.*", "launches": 7, "because": "so" },
      { "operator": "gelu", "each_expert": true, "launches": 8, "because": "so" },
      { "operator": "gelu", "launches": 9, "because": "so" })");
  CHECK(std::ranges::count_if(rules, [](const Rule& rule) {
          const auto* one = std::get_if<cost::OperatorKernels>(&rule);
          return one != nullptr && one->of == "gelu";
        }) == 3);
  CHECK_THROWS_AS(folder.rules(R"({ "operator": "gelu", "named": "x", "because": "so" },
                                  { "operator": "gelu", "named": "x", "because": "so" })"),
                  InputError);
  for (const char* rule :
       {R"({ "operator": "optimizer_step", "named": "x", "because": "so" })",
        R"({ "operator": "contraction", "each_expert": true, "because": "so" })",
        R"({ "operator": "gelu", "named": "x", "kept_buffers": 2, "because": "so" })",
        R"({ "operator": "gelu", "each_expert": false, "because": "so" },
           { "operator": "gelu", "because": "so" })"}) {
    INFO(rule);
    CHECK_THROWS_AS(folder.rules(rule), InputError);
  }
}

TEST_CASE("what a base says can be taken back, all that a rule says or a part of it") {
  const Folder folder;
  const std::vector<Rule> left = {rules_of_whole()[1], rules_of_whole()[3]};
  CHECK(folder.rules(R"({"drop": {"fuse": ["bias_add", "gelu"]}, "because": "so"},
                        {"drop": {"operator": "gelu", "launches": 2}, "because": "so"})") == left);
  CHECK(folder.rules(R"({"drop": {"because": "so"}, "because": "none of it holds"})").empty());
  // What a file says itself is not of its base, wherever it stands.
  for (const char* both : {R"({"operator": "gelu", "launches": 7, "because": "so"},
                              {"drop": {"operator": "gelu"}, "because": "so"})",
                           R"({"drop": {"operator": "gelu"}, "because": "so"},
                              {"operator": "gelu", "launches": 7, "because": "so"})"}) {
    const std::vector<Rule> rules = folder.rules(both);
    CHECK(std::ranges::count(rules, Rule{cost::OperatorKernels{.of = "gelu", .launches = 7}}) == 1);
    CHECK(rules.size() == rules_of_whole().size());
  }
  for (const char* none : {R"({"operator": "gelu", "launches": 3})", R"({"fuse": ["gelu"]})",
                           R"({"launchs": 2})", "{}"}) {
    INFO(none);
    CHECK_THROWS_WITH(folder.rules(R"({"drop": )" + std::string(none) + R"(, "because": "so"})"),
                      ContainsSubstring("/rules/0/drop: expected what rules of the base say"));
  }
}

TEST_CASE("a base may have a base, what stands nearer counts, and no circle is followed") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  static_cast<void>(folder.over("whole", R"("rules": [
    {"drop": {"fuse": ["bias_add", "gelu"]}, "because": "so"},
    {"operator": "gelu", "launches": 4, "because": "so"},
    {"lifetime": "gradients until the step", "because": "so"}])",
                                "middle"));
  const cost::Stack stack = folder.over("middle", R"("rules": [
    {"operator": "gelu", "launches": 6, "because": "so"},
    {"fuse": ["bias_add", "gelu"], "because": "so"},
    {"drop": {"lifetime": "gradients until the step"}, "because": "so"}])",
                                        "outer");
  CHECK(stack.name == "outer");
  CHECK(stack.rules == std::vector<Rule>{cost::OperatorKernels{.of = "gelu", .launches = 6},
                                         rules_of_whole()[1], rules_of_whole()[3],
                                         rules_of_whole()[2]});
  static_cast<void>(folder.write("middle.json", R"({ "name": "middle", "base": "outer",
    "source": "x" })"));
  CHECK_THROWS_WITH(folder.over("middle", R"("rules": [])", "outer"),
                    ContainsSubstring("/base: expected at most 8"));
}

TEST_CASE("a stack on a base that names an NCCL may have none") {
  const Folder folder;
  const std::string with_nccl =
      std::string(whole).replace(std::string(whole).find("\"rules\""), 0, R"("nccl": "2.18.6", )");
  CHECK(cost::read_stack(folder.write("whole.json", with_nccl)).nccl == "2.18.6");
  const std::string variant = R"({ "name": "variant", "base": "whole", "source": "x", "nccl": ")";
  CHECK(cost::read_stack(folder.write("same.json", R"({ "name": "variant", "base": "whole",
    "source": "x" })"))
            .nccl == "2.18.6");
  CHECK(cost::read_stack(folder.write("none.json", variant + "none\" }")).nccl.empty());
  CHECK_THROWS_AS(cost::read_stack(folder.write("nothing.json", variant + "\" }")), InputError);
}

TEST_CASE("rules that no model can show are refused") {
  const Folder folder;
  const auto refused = [&](const std::string& rule, const std::string& path) {
    INFO(rule);
    CHECK_THROWS_WITH(folder.rules(rule), ContainsSubstring("variant.json: " + path));
  };
  // Activations have no weights, tokens no gradients, and a copy of a tensor in place has no
  // kernel. A causal softmax is looked up as masked_softmax.
  for (const std::string name :
       {"gelu.W", "embedding.B", "identity", "causal_softmax", "add.B", "bias_gradient"})
    refused(R"({"operator": ")" + name + R"(", "because": "so"})", "/rules/0/operator");
  refused(R"({"keep_outputs_of": "gelu.B", "passes": 2, "because": "so"})",
          "/rules/0/keep_outputs_of");
  refused(R"({"random_state": "before identity", "size": "1 B", "because": "so"})",
          "/rules/0/random_state");
  refused(R"({"hold_inputs_of": "gelu", "until": "gelu", "because": "so"})", "/rules/0/until");
}

TEST_CASE("every kind of rule is read as it is written, and back to what is usual") {
  const Folder folder;
  const auto one = [&](const std::string& rule) {
    INFO(rule);
    return folder.rules("{" + rule + R"(, "because": "so"})").back();
  };
  using cost::CollectiveKind;
  using model::Pass;
  CHECK(one(R"("operator": "gelu.B")") == Rule{cost::OperatorKernels{.of = "gelu.B"}});
  CHECK(one(R"("collective": "all_gather", "of": "activations", "beside": "input gradients")") ==
        Rule{cost::CollectiveBeside{CollectiveKind::all_gather, false, Pass::input_gradient}});
  CHECK(one(R"("gathers_in_pieces_of": "activations", "by": "own share first")") ==
        Rule{cost::GatherInPieces{false, cost::GatherInPieces::By::own_share_first}});
  CHECK(one(R"("gathers_in_pieces_of": "input gradients", "by": "ring exchange")") ==
        Rule{cost::GatherInPieces{true, cost::GatherInPieces::By::ring_exchange}});
  CHECK(one(R"("scatters_in_pieces": 4, "multiprocessors": 16)") ==
        Rule{cost::ScatterInPieces{4, 16}});
  CHECK(one(R"("gather_buffers": 2)") == Rule{cost::GatherBuffers{2}});
  CHECK(one(R"("step_sums": "whole gradients")") == Rule{cost::StepSums::whole_gradients});
  CHECK(one(R"("unaligned_batches": "in fp32")") == Rule{cost::UnalignedBatches::in_fp32});
  CHECK(one(R"("send_shares_of": "gradients")") == Rule{cost::StageShares::gradients});
  CHECK(one(R"("hold_inputs_of": "gelu", "until": "dropout")") ==
        Rule{cost::HeldInputs{"gelu", "dropout"}});
  CHECK(one(R"("keep_outputs_of": "exponential", "passes": 2)") ==
        Rule{cost::KeptOutputs{"exponential", 2}});
  CHECK(one(R"("lifetime": "sent activations until their gradients")") ==
        Rule{cost::Lifetime::sent_until_gradients});
  CHECK(one(R"("host_waits": "before each micro-batch")") ==
        Rule{cost::HostWaits::each_micro_batch});
  CHECK(one(R"("host_waits": "before each pass")") == Rule{cost::HostWaits::each_pass});
  CHECK(one(R"("host_waits": "before each pass that receives")") ==
        Rule{cost::HostWaits::each_received_pass});
  CHECK(one(R"("host_waits": "for each exchange of stages")") ==
        Rule{cost::HostWaits::each_exchange});
  CHECK(one(R"("host_waits": "for each launch")") == Rule{cost::HostWaits::each_launch});
  CHECK(one(R"("communicator": "pipeline", "number": 2)") ==
        Rule{cost::Communicators{cost::RankGroup::pipeline, 2}});
  CHECK(one(R"("communicator": "model")") == Rule{cost::Communicators{cost::RankGroup::model, 1}});
  CHECK(one(R"("shard_collectives": "by weight", "gathers": "waited for", "kernels_per_rank": 2,
               "of_one_rank": true)") == Rule{cost::ShardCollectives{true, true, 2, true}});
  CHECK(one(R"("shard_collectives": "by segment", "gathers": "queued", "kernels_per_rank": 0)") ==
        Rule{cost::ShardCollectives{}});
  CHECK(one(R"("step_gathers": "1 GB", "kernels_per_rank": 1)") ==
        Rule{cost::StepGathers{1_GB, 1}});
  CHECK(one(R"("state": "more", "bytes": "2 B", "with": "gradients")") ==
        Rule{cost::ExtraState{"more", 2_B, cost::ExtraState::With::gradients}});
  CHECK(one(R"("random_state": "after gelu.B", "copies": 3, "size": "816 B")") ==
        Rule{cost::RandomStateCopies{"after gelu.B", 3, 816_B}});
}

TEST_CASE("rules want what they need, values in range, known words, and a reason") {
  const Folder folder;
  const auto refused = [&](const std::string& rule, const std::string& where) {
    INFO(rule);
    CHECK_THROWS_WITH(folder.rules("{" + rule + R"(, "because": "so"})"), ContainsSubstring(where));
  };
  refused(R"("operator": "gelu", "kernels": 2)", "/rules/0/kernels");
  refused(R"("operator": "gelu", "fuse": ["add", "gelu"])", "/rules/0/fuse");
  refused(R"("kernels": 2)", "/rules/0: expected one of the keys \"operator\", \"fuse\"");
  refused(R"("fuse": ["bias_ad", "gelu"])", "/rules/0/fuse/0");
  refused(R"("fuse": ["gelu"])", "/rules/0/fuse: expected a list of 2 or more");
  refused(R"("collective": "send", "of": "activations", "beside": "input gradients")",
          "/rules/0/collective");
  refused(R"("collective": "all_reduce", "of": "weights", "beside": "input gradients")",
          "/rules/0/of");
  refused(R"("collective": "all_reduce", "of": "activations", "beside": "all")", "/rules/0/beside");
  refused(R"("gathers_in_pieces_of": "activations")", "/rules/0: expected the key \"by\"");
  refused(R"("scatters_in_pieces": 1)", "/rules/0/scatters_in_pieces");
  refused(R"("step_sums": "shares")", "/rules/0/step_sums");
  refused(R"("operator": "gelu", "flat_shares": true)", "/rules/0/flat_shares");
  refused(R"("unaligned_batches": "in fp64")", "/rules/0/unaligned_batches");
  refused(R"("send_shares_of": "weights")", "/rules/0/send_shares_of");
  refused(R"("hold_inputs_of": "gelu", "until": "drop")", "/rules/0/until");
  refused(R"("keep_outputs_of": "exponential", "passes": 0)", "/rules/0/passes");
  refused(R"("host_waits": "described")", "/rules/0/host_waits");
  refused(R"("communicator": "expert")", "/rules/0/communicator");
  refused(R"("communicator": "world", "number": 0)", "/rules/0/number");
  for (const char* size : {"-1 GB", "0 B"})
    refused(R"("step_gathers": ")" + std::string(size) + R"(", "kernels_per_rank": 1)",
            "/rules/0/step_gathers");
  refused(R"("state": "gradients", "bytes": "1 TB", "with": "steps")", "/rules/0/bytes");
  CHECK_THROWS_WITH(folder.rules(R"({"operator": "gelu"})"),
                    ContainsSubstring("/rules/0: expected the key \"because\""));
  CHECK_THROWS_WITH(folder.rules(R"({"operator": "gelu", "because": ""})"),
                    ContainsSubstring("/rules/0/because: expected some text"));
}

TEST_CASE("keys of older stack files are refused with the rule that is written now") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  for (const auto& [key, now] :
       std::vector<std::pair<std::string, std::string>>{{"operators", "operator"},
                                                        {"gradient_accumulation", "operator"},
                                                        {"optimizer", "operator\" or \"state"},
                                                        {"fusions", "fuse"},
                                                        {"collectives", "collective"},
                                                        {"stage_shares", "send_shares_of"},
                                                        {"held_inputs", "hold_inputs_of"},
                                                        {"kept_outputs", "keep_outputs_of"},
                                                        {"gradients", "lifetime"},
                                                        {"sent_activations", "lifetime"},
                                                        {"host_waits", "host_waits"},
                                                        {"stage_exchanges", "host_waits"},
                                                        {"communicators", "communicator"},
                                                        {"shard_collectives", "shard_collectives"},
                                                        {"step_gathers", "step_gathers"},
                                                        {"random_state", "random_state"}}) {
    INFO(key);
    CHECK_THROWS_WITH(folder.over("whole", "\"" + key + "\": {}"),
                      ContainsSubstring("/" + key + ": expected one of the \"rules\"") &&
                          ContainsSubstring("with the key \"" + now + "\""));
  }
}

TEST_CASE("a stack says how it takes memory, and one that does not has no allocator of its own") {
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

TEST_CASE("GPUs of a newer generation have workspaces of their own") {
  const Folder folder;
  static_cast<void>(folder.write("whole.json", whole));
  const auto workspaces = [&](const std::string& newer) {
    const std::string rest = R"("provenance": "published", "source": "nobody", "value": )";
    const std::string workspace = "{" + rest + R"("8 MiB", "newer": [{"from": 8.6, )" + rest +
                                  R"("9 MiB"}, {"from": )" + newer + ", " + rest + R"("32 MiB"}]})";
    return cost::read_stack(folder.write("variant.json", R"({
      "name": "variant", "base": "whole", "source": "made up", "memory": {
        "allocator": "caching", "workspace_from": "allocator", "workspace": )" +
                                                             workspace + "}}"))
        .memory;
  };
  cost::MemoryFacts memory = workspaces("9.0");
  CHECK(memory.workspace->value == 8_MiB);
  const auto on = [&](int compute_capability) {
    cost::choose_workspace(memory, compute_capability);
    return memory.workspace->value;
  };
  CHECK(on(0) == 8_MiB);
  CHECK(on(80) == 8_MiB);
  CHECK(on(86) == 9_MiB);
  CHECK(on(89) == 9_MiB);
  CHECK(on(90) == 32_MiB);
  CHECK(on(100) == 32_MiB);
  CHECK_THROWS_WITH(workspaces("8.6"), ContainsSubstring("/memory/workspace/newer/1/from"));
  CHECK_THROWS_WITH(workspaces("\"9.0\""), ContainsSubstring("/memory/workspace/newer/1/from"));
}

TEST_CASE("unknown keys, missing values and factors of zero and less are refused") {
  const Folder folder;
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& error) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    CHECK_THROWS_WITH(cost::read_stack(folder.write("wrong.json", text)), ContainsSubstring(error));
  };
  refused("\"rules\"", "\"ruels\"", "\"rules\"");
  refused("\"slowdown\"", "\"slow\"", "\"slowdown\"");
  refused("\"precisions\"", "\"precision\"", "did you mean \"precisions\"?");
  refused("\"gelu\"", "\"gleu\"", "did you mean \"gelu\"?");
  refused("\"value\": 1.5", "\"value\": 0", "/slowdown/value");
  refused("\"value\": 1,", "\"value\": -1,", "/host_factor/value");
}

TEST_CASE("slowdowns of a stack and of an operator stretch kernels but not copies to the host") {
  cost::Stack stack;
  stack.slowdown.value = 2;
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  cost::Kernel kernel;
  kernel.traffic = 1_GB;
  CHECK(cost::kernel_time(kernel, profile, stack) == 2 * cost::kernel_time(kernel, profile));
  kernel.slowdown = 3;  // as a rule about its operator says
  CHECK(cost::kernel_time(kernel, profile, stack) == 6 * cost::kernel_time(kernel, profile));
  kernel.kind = cost::KernelKind::host_copy;
  CHECK(cost::kernel_time(kernel, profile, stack) == cost::kernel_time(kernel, profile));
}

TEST_CASE("a stack's slowdown is of its own kernels, product_slowdown of the libraries'") {
  cost::Stack stack;
  stack.slowdown.value = 2;
  const cost::Profile profile = cost::read_profile("scenarios/profiles/a100-sxm4-80gb.json");
  cost::Kernel product{.kind = cost::KernelKind::gemm, .m = 4096, .n = 4096, .k = 4096, .batch = 1};
  product.flops = Flops{2.0 * 4096 * 4096 * 4096};
  cost::Kernel attention{
      .kind = cost::KernelKind::attention, .m = 1024, .n = 1024, .k = 128, .batch = 16};
  attention.flops = Flops{4.0 * 1024 * 1024 * 128 * 16};
  cost::Kernel copy{.traffic = 1_GB};
  for (const cost::Kernel& kernel : {product, attention})
    CHECK(cost::kernel_time(kernel, profile, stack) == cost::kernel_time(kernel, profile));
  stack.product_slowdown = cost::Constant<double>{.value = 3};
  for (const cost::Kernel& kernel : {product, attention})
    CHECK(cost::kernel_time(kernel, profile, stack) == 3 * cost::kernel_time(kernel, profile));
  CHECK(cost::kernel_time(copy, profile, stack) == 2 * cost::kernel_time(copy, profile));
  copy.kind = cost::KernelKind::host_copy;
  CHECK(cost::kernel_time(copy, profile, stack) == cost::kernel_time(copy, profile));
}

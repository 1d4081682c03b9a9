// Layers that run again together, the first layers of stages, operators by name: what is kept, what
// runs again, and in which order.
#include <algorithm>
#include <array>
#include <map>

#include "tests/catch.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/lowering/replay.hpp"
#include "tests/lowering/small_evoformer.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::lowering::recompute_together_test {

using program::Call;
using program::Category;
using program::Program;
using program::Stream;
using strategies::Plan;

namespace {

constexpr double sbh = 20.0 * 12 * 48;
/// What a layer keeps, Korthikanti et al., arXiv:2205.05198, equation 1: sbh(34 + 5as/h).
constexpr double layer_bytes = sbh * (34 + 5.0 * 8 * 20 / 48);

bool runs_again(const program::Block& block) {
  return std::ranges::any_of(block.tasks, &program::Task::recomputed) &&
         block.name.starts_with("F again");
}

/// "F0 F1 A0 A1 B1 B0": the layers of a sequence as they run, A where they run again together.
std::string layers_of(const Program& program, int sequence = 0) {
  std::string text;
  for (const Call& call : program.sequences[sequence].calls) {
    if (call.segment < 1 || call.segment > 4 || ends_iteration(program, call)) continue;
    const std::string pass = runs_again(program.blocks[call.block]) ? "A" : to_text(call.cell.pass);
    text += (text.empty() ? "" : " ") + pass + std::to_string(call.segment - 1);
  }
  return text;
}

/// After every call: live bytes of a category.
std::vector<double> live(const Program& program, Category category) {
  std::vector<double> result;
  double now = 0;
  for (const Call& call : program.sequences[0].calls)
    result.push_back(now += left_by(program.blocks[call.block], category).value);
  return result;
}

/// The most that is alive between two calls.
double most(const Program& program, Category category) {
  return std::ranges::max(live(program, category));
}

std::size_t groups_of(const model::Graph& graph, const std::string& strategy) {
  return plan_of(graph, strategy, 2).recomputed().size();
}

}  // namespace

TEST_CASE("layers of a group run again in order before the backward pass of the last") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK(layers_of(lowered(graph, R"({"recompute": {"every": 2}})")) ==
        "F0 F1 F2 F3 A2 A3 B3 B2 A0 A1 B1 B0");
  CHECK(layers_of(lowered(graph, R"({"recompute": {"every": 3}})")) ==
        "F0 F1 F2 F3 B3 A0 A1 A2 B2 B1 B0");  // layer 3 by itself, within its backward block
  CHECK(layers_of(lowered(graph, R"({"recompute": {"every": 9}})")) ==
        "F0 F1 F2 F3 A0 A1 A2 A3 B3 B2 B1 B0");
  CHECK(layers_of(lowered(graph, R"({"recompute": {"every": 1}})")) ==
        layers_of(lowered(graph, R"({"recompute": "full"})")));
}

TEST_CASE("L/k checkpoints of 2sbh wait, and k layers' activations are there at once") {
  // Chen et al., arXiv:1604.06174, section 4.1: O(L/k + k).
  const model::Graph graph = model::gpt(small_gpt);
  for (const int k : {2, 4}) {
    INFO(k);
    const Program program =
        lowered(graph, "{\"recompute\": {\"every\": " + std::to_string(k) + "}}");
    CHECK(most(program, Category::checkpoints) == 4.0 / k * 2 * sbh);
    // When the last group has run again: its first layer's input is a checkpoint. The embeddings'
    // mask waits, the head's activations are gone.
    const program::Calls& calls = program.sequences[0].calls;
    const auto last_again = std::ranges::find_if(calls, [](const Call& call) {
      return call.segment == 4 && call.cell.pass == placement::CellPass::backward;
    });
    REQUIRE(runs_again(program.blocks[(*last_again).block]));
    const std::ptrdiff_t at = std::ranges::distance(calls.begin(), last_again);
    CHECK(live(program, Category::activations)[at] == k * layer_bytes - 2 * sbh + sbh);
    CHECK(live(program, Category::statistics)[at] == k * 4 * 4 * 20 * 12);
    CHECK(live(program, Category::activations).back() == 0);
    CHECK(live(program, Category::checkpoints).back() == 0);
  }
}

TEST_CASE("layers that run again together compute and communicate what they do one by one") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto words = [](const std::string& recompute) {
    return R"({"tensor": 4, "recompute": )" + recompute + "}";
  };
  const Program alone = lowered(graph, words(R"("full")"), 3);
  const Program together = lowered(graph, words(R"({"every": 2})"), 3);
  CHECK(close(hardware_flops(together), hardware_flops(alone), 1e-12));
  CHECK(flops_once(together) == flops_once(alone));
  const auto payload = [](const Program& program) {
    Bytes sum;
    for (const program::Collective& one : collectives(program, 0, Stream::communication))
      sum += one.payload;
    return sum;
  };
  CHECK(payload(together) == payload(alone));
}

TEST_CASE("uniform groups k layers of every stage, block takes the first n") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto same = [&](const std::string& one, const std::string& other) {
    return plan_of(graph, one, 2).recomputed() == plan_of(graph, other, 2).recomputed();
  };
  CHECK(same(R"({"recompute": {"layers": 2, "method": "uniform"}})",
             R"({"recompute": {"every": 2}})"));
  CHECK(same(R"({"recompute": {"layers": 4, "method": "block"}})", R"({"recompute": "full"})"));
  CHECK(same(R"({"recompute": {"layers": 9, "method": "block"}})", R"({"recompute": "full"})"));
  const Plan block =
      plan_of(graph, R"({"recompute": {"layers": 1, "method": "block"}, "pipeline": 2})", 2);
  CHECK(block.recomputed() == std::vector{graph.segments[1].forward, graph.segments[3].forward});
  // Groups end with their stage: two of three layers, two of one.
  CHECK(groups_of(graph, R"({"recompute": {"every": 2}, "pipeline": 2,
                             "layers_per_stage": [3, 1]})") == 3);
  CHECK(groups_of(graph, R"({"recompute": {"every": 2}, "pipeline": 2,
                             "schedule": "interleaved"})") == 4);
}

TEST_CASE("operators that a pattern names are a group of every layer") {
  const model::Graph graph = model::gpt(small_gpt);
  const Plan plan = plan_of(graph, R"({"recompute": {"operators": ["layers.*.mlp.*"]}})");
  REQUIRE(plan.recomputed().size() == 4);
  for (const std::vector<model::OpId>& group : plan.recomputed()) {
    for (const model::OpId op : group)
      CHECK_THAT(graph.operators[op].name, ContainsSubstring(".mlp."));
  }
  // Attention's core, by name as by structure.
  const Plan named = plan_of(graph, R"({"recompute": {"operators": ["*.scores", "*.softmax"]}})");
  CHECK(named.recomputed().size() == 8);
  const std::array core = {"scores", "softmax", "dropout", "context"};
  Plan selective(graph);
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<model::OpId> group;
    for (const char* name : core) {
      group.push_back(operator_named(
          graph, "layers." + std::to_string(layer) + ".attention." + std::string(name)));
    }
    selective.recompute(group);
  }
  CHECK(selective.recomputed() == plan_of(graph, R"({"recompute": "selective"})").recomputed());
}

TEST_CASE("what cannot run again is refused in one line") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& recompute, const std::string& more = "") {
    return refusal([&] { lowered(graph, "{\"recompute\": " + recompute + more + "}", 4); });
  };
  CHECK_THAT(refused(R"({"every": 0})"),
             StartsWith("test.json: /strategy/recompute/every: expected"));
  CHECK_THAT(refused(R"({"layers": 0, "method": "block"})"),
             StartsWith("test.json: /strategy/recompute/layers: expected"));
  CHECK_THAT(refused(R"({"layers": 2})"), ContainsSubstring("method"));
  CHECK_THAT(
      refused(R"({"layers": 2, "method": "blok"})"),
      StartsWith("test.json: /strategy/recompute/method: expected") && ContainsSubstring("block"));
  CHECK_THAT(refused(R"({"evry": 2})"), StartsWith("test.json: /strategy/recompute: expected"));
  CHECK_THAT(
      refused(R"({"operators": []})"),
      StartsWith(
          "test.json: /strategy/recompute/operators: expected a list of 1 or more, found []"));
  CHECK_THAT(refused(R"({"operators": ["layers.*.mlp.*", "layers.*.mpl.*"]})"),
             StartsWith("test.json: /strategy/recompute/operators/1: expected a pattern of "
                        "operators' names (did you mean \"layers.*.mlp.*\"?), found"));
  CHECK_THAT(refused(R"({"operators": ["layers.*.mlp.*", "*.fc1"]})"),
             StartsWith("test.json: /strategy/recompute/operators/1: expected every operator in "
                        "one recomputed group, found"));
  // mlp_norm reads what attention computed, which reads input_norm of the same group.
  CHECK_THAT(refused(R"({"operators": ["layers.*_norm", "layers.*.attention*"],
                         "results": "dropped"})"),
             StartsWith("/strategy/recompute: expected groups that drop their results "
                        "and do not need each other, found a circle with layers.0."));
  CHECK_THAT(refused(R"({"every": 2})", R"(, "token_slices": [12, 8])"),
             ContainsSubstring("no recomputation"));
  CHECK_THAT(refused(R"("none")", R"(, "partition_checkpoints": true)"),
             StartsWith("test.json: /strategy/partition_checkpoints: expected recompute"));
  Plan plan = plan_of(graph, R"({"pipeline": 2})", 2);
  std::vector<model::OpId> both = graph.segments[2].forward;
  both.insert(both.end(), graph.segments[3].forward.begin(), graph.segments[3].forward.end());
  CHECK_THAT(refusal([&] { plan.recompute(both); }), ContainsSubstring("of two stages"));
}

TEST_CASE("groups of layers go with every schedule, and with stages that are no grid") {
  model::GptConfig config = small_gpt;
  config.layers = 16;
  const std::vector<strategies::Schedule>& schedules = strategies::schedules();
  for (std::size_t i = 0; i < schedules.size(); i += stride(3)) {
    const strategies::Schedule& entry = schedules[i];
    INFO(entry.name);
    // Where iterations overlap, a round has calls of several: buffers of one name for the replay.
    if (entry.name.starts_with("pipedream")) continue;
    model::Graph graph = model::gpt(config);
    if (entry.name == "3f1b") graph.forward_repeats = 3;
    const std::string strategy =
        R"({"recompute": {"every": 2}, "pipeline": 4, "schedule": ")" + entry.name + "\"}";
    const Program program = lowered(graph, strategy, 8);
    bool any = false;
    for (std::size_t s = 0; s < program.sequences.size(); ++s) {
      CHECK(Replay(program, static_cast<int>(s)).alive().empty());
      for (const Call& call : program.sequences[s].calls)
        any |= runs_again(program.blocks[call.block]);
    }
    CHECK(any);
  }
  config.tied = false;
  const model::Graph gpt = model::gpt(small_gpt);
  const model::Graph untied = model::gpt(config);
  const model::Graph evoformer = model::evoformer(small_evoformer);
  const auto check = [](const Plan& plan) {
    const Program program = lower(plan, plain_stack());
    for (std::size_t s = 0; s < program.sequences.size(); ++s)
      CHECK(Replay(program, static_cast<int>(s)).alive().empty());
  };
  check(plan_of(untied, R"({"recompute": {"every": 2}, "pipeline": 4, "embedding": "all",
                            "head": "all"})",
                4));
  check(plan_of(evoformer, R"({"recompute": {"every": 2}, "dap": 2})", 4));
  check(plan_of(evoformer, R"({"recompute": {"every": 3}, "dap": 4, "data": 2})", 4));
  check(with_lists(plan_of(gpt, R"({"recompute": {"every": 2}, "tensor": 2, "pipeline": 2})", 2)));
}

TEST_CASE("of a group only its checkpoint is swapped") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, R"({"recompute": {"every": 2}, "swap": 4})");
  std::map<cost::CollectiveKind, double> copied;
  for (const Call& call : program.sequences[0].calls) {
    for (const program::Task& task : program.blocks[call.block].tasks) {
      if (task.stream == Stream::copy_out || task.stream == Stream::copy_in)
        copied[collective_of(task)->kind] += collective_of(task)->payload.value;
    }
  }
  CHECK(copied ==
        std::map<cost::CollectiveKind, double>{{cost::CollectiveKind::to_host, 2 * 2 * sbh},
                                               {cost::CollectiveKind::from_host, 2 * 2 * sbh}});
}

}  // namespace stratagem::lowering::recompute_together_test

// The tables of strategies and schedules: what holds for every line.
#include "strategies/parallel/all.hpp"

#include <set>

#include "strategies/parallel/read_options.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::all_test {

using lowering::lowered;
using lowering::refusal;
using lowering::small_gpt;

namespace {

/// What is wrong with {"key": value}, below `above` if it is not empty.
std::string refused(const std::string& above, const std::string& key, std::int64_t value) {
  const Json object = Json::object().set(key, value);
  const Json strategy = above.empty() ? object : Json::object().set(above, object);
  return refusal([&] { read_options(JsonReader::from_text(strategy.text(), "a.json")); });
}

/// What a key tells its reader, and that it refuses whole numbers beyond its range. Returns whether
/// it has one. Objects of which another key must be there lack that.
bool check_option(const OptionText& option, const std::string& above) {
  INFO(above << "/" << option.key);
  CHECK_FALSE(option.sentence.empty());
  CHECK_FALSE(option.words.empty());
  CHECK_FALSE(option.usual.empty());
  const JsonReader schema = JsonReader::from_text(option.schema.text(), option.key);
  const bool in_range = schema.has("type") && schema.at("type").text() == "integer";
  if (!in_range || !(above.empty() || option.required())) return false;
  const auto least = schema.at("minimum").whole_number(),
             most = schema.at("maximum").whole_number();
  const std::string path = "a.json: /" + (above.empty() ? "" : above + "/") + option.key;
  for (const std::int64_t value : {least - 1, most + 1}) {
    CHECK_THAT(refused(above, option.key, value),
               StartsWith(path + ": expected a whole number from " + std::to_string(least) +
                          " to " + std::to_string(most) + ", found " + std::to_string(value)));
  }
  return true;
}

}  // namespace

TEST_CASE("every option tells its values, default and use, and is refused beyond its range") {
  int in_range = 0;
  for (const OptionText& option : option_texts()) {
    in_range += check_option(option, "") ? 1 : 0;
    for (const OptionText& below : option.keys) in_range += check_option(below, option.key) ? 1 : 0;
  }
  // tensor, context, dap, data, expert, pipeline, ranks_per_device, chunks, coshard_layers,
  // gradient_buffers; stage of zero, layers of swap, every of recompute
  CHECK(in_range >= 13);
}

TEST_CASE("an option's path is that of its key") {
  CHECK(path_of(&Options::swap) == "/strategy/swap");
  CHECK(path_of(&Options::recompute) == "/strategy/recompute");
  CHECK(path_of(&Options::gradients, &GradientReduction::buffers) == "/strategy/gradient_buffers");
  CHECK(path_of(&Options::recompute, &RecomputeOptions::divides) ==
        "/strategy/partition_checkpoints");
}

TEST_CASE("every strategy and schedule has a name of its own and a summary") {
  std::set<std::string> names;
  for (const Strategy& entry : all()) {
    CHECK(names.insert(entry.key()).second);
    CHECK_FALSE(entry.options.front().sentence.empty());
  }
  for (const Schedule& entry : schedules()) {
    CHECK(names.insert(entry.name).second);
    CHECK_FALSE(entry.summary.empty());
  }
}

TEST_CASE("every strategy leaves a plan alone where its degree is one") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const Strategy& entry : all()) {
    INFO(entry.key());
    Plan plan(graph);
    entry.apply(plan, Options{});
    CHECK(plan.stages.size() == 1);
    CHECK(plan.orders().pairs.empty());
    for (const model::OpId op : plan.operators()) {
      CHECK(plan.placement(op).axes.empty());
      CHECK(plan.placement(op).first_devices == std::vector<int>{0});
    }
    CHECK(plan.recomputed().empty());
  }
}

TEST_CASE("every schedule orders all cells of every stage, or says which numbers it needs") {
  model::GptConfig config = small_gpt;
  config.layers = 8;
  for (const Schedule& entry : schedules()) {
    model::Graph graph = model::gpt(config);
    if (entry.name == "3f1b") graph.forward_repeats = 3;
    int ordered = 0;
    for (const int ranks : {1, 2, 4}) {
      for (const int micro_batches : {1, 2, 3, 4, 7, 8}) {
        INFO(entry.name << ", " << ranks << " ranks, " << micro_batches << " micro-batches");
        const std::string strategy =
            "{\"pipeline\": " + std::to_string(ranks) + ", \"schedule\": \"" + entry.name + "\"}";
        const std::string text = refusal([&] { lowered(graph, strategy, micro_batches); });
        INFO(text);
        ordered += text.empty() ? 1 : 0;
        if (!text.empty()) CHECK_THAT(text, ContainsSubstring("/strategy/schedule: expected "));
      }
    }
    CHECK(ordered >= 2);
  }
}

TEST_CASE("devices are tensor ranks, then data ranks, then stages") {
  const model::Graph graph = model::gpt(small_gpt);
  const Plan plan = lowering::plan_of(graph, R"({"tensor": 2, "data": 3, "pipeline": 4})");
  // Layer 2 (segment 3) is the third of four stages: its first device is 2 * (3 * 2) = 12.
  const Plan::Placement& placement = plan.placement(graph.segments[3].forward.front());
  CHECK(placement.first_devices == std::vector<int>{12});
  REQUIRE(placement.axes.size() == 2);
  for (const placement::Axis& axis : placement.axes) {
    CHECK(axis.size == (axis.name == "tensor" ? 2 : 3));
    CHECK(axis.stride == (axis.name == "tensor" ? 1 : 2));
  }
  CHECK(lowering::lower(plan, lowering::plain_stack()).devices.size() == 24);
}

TEST_CASE("another order of ranks puts other ranks next to each other") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto devices = [&](const std::string& order, int stage, int tensor, int data) {
    const Plan plan = lowering::plan_of(
        graph, R"({"tensor": 2, "data": 3, "pipeline": 4, "rank_order": ")" + order + "\"}", 4);
    const Plan::Placement& placement =
        plan.placement(graph.segments[plan.stages[stage].back()].forward.front());
    int device = placement.first_devices[0];
    for (const placement::Axis& axis : placement.axes)
      device += axis.stride * (axis.name == "tensor" ? tensor : data);
    return device;
  };
  for (int stage = 0; stage < 4; ++stage) {
    for (int tensor = 0; tensor < 2; ++tensor) {
      for (int data = 0; data < 3; ++data) {
        CHECK(devices("tp-dp-pp", stage, tensor, data) == tensor + 2 * data + 6 * stage);
        CHECK(devices("tp-pp-dp", stage, tensor, data) == tensor + 2 * stage + 8 * data);
        CHECK(devices("pp-dp-tp", stage, tensor, data) == stage + 4 * data + 12 * tensor);
      }
    }
  }
}

TEST_CASE("an order of ranks computes the same, wherever they stand") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::string rest =
      R"({"tensor": 2, "data": 2, "pipeline": 2, "zero": 1, "sequence_parallel": true,)"
      R"( "rank_order": ")";
  const program::Program usual = lowered(graph, rest + "tp-dp-pp\"}", 3);
  for (const std::string order : {"tp-pp-dp", "dp-tp-pp", "pp-tp-dp", "dp-pp-tp", "pp-dp-tp"}) {
    INFO(order);
    const program::Program program = lowered(graph, rest + order + "\"}", 3);
    CHECK(program.devices.size() == usual.devices.size());
    REQUIRE(program.sequences.size() == usual.sequences.size());
    for (std::size_t s = 0; s < usual.sequences.size(); ++s)
      CHECK(task_count(program, program.sequences[s]) == task_count(usual, usual.sequences[s]));
    CHECK(hardware_flops(program) == hardware_flops(usual));
  }
}

TEST_CASE("an order of ranks names each kind once, and none that has several ranks is left out") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& order) {
    return refusal(
        [&] { lowered(graph, R"({"tensor": 2, "data": 2, "rank_order": ")" + order + "\"}", 1); });
  };
  CHECK_THAT(refused("tp-tp"), StartsWith("test.json: /strategy/rank_order: expected each of tp"));
  CHECK_THAT(refused("dp-xp"), StartsWith("test.json: /strategy/rank_order: expected each of tp"));
  CHECK_THAT(refused("tp"),
             StartsWith("test.json: /strategy/rank_order: expected dp in the order"));
  CHECK(refused("dp-tp").empty());
}

TEST_CASE("a degree that does not divide the model is refused at its key") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto refused = [&](const std::string& strategy) {
    return refusal([&] { lowered(graph, strategy); });
  };
  CHECK_THAT(refused(R"({"tensor": 3})"), StartsWith("test.json: /strategy/tensor: "));
  CHECK_THAT(refused(R"({"data": 5})"), StartsWith("test.json: /strategy/data: "));
  CHECK_THAT(refused(R"({"pipeline": 3})"), StartsWith("test.json: /strategy/pipeline: "));
  CHECK_THAT(refused(R"({"pipeline": 8})"), StartsWith("test.json: /strategy/pipeline: "));
  // Each divides, both together do not: 12 samples over 8 ranks are left whole by none.
  CHECK_THAT(refused(R"({"data": 8, "tensor": 2})"), StartsWith("test.json: /strategy/data: "));
}

}  // namespace stratagem::strategies::all_test

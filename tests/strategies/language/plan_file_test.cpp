// Plan files: nnScaler's tables written literally, and what each key says.
#include "strategies/language/plan_file.hpp"

#include "strategies/language/device_formula.hpp"
#include "strategies/language/plan_devices.hpp"
#include "strategies/language/plan_text.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::plan_file_test {

using lowering::lower;
using lowering::plain_stack;
using lowering::plan_of;
using lowering::refusal;
using lowering::small_gpt;
using placement::Cell;
using program::Program;

namespace {

Plan plan_from(const model::Graph& graph, const std::string& text, int micro_batches = 1) {
  return read_plan(JsonReader::from_text(text, "plan.json"), graph, micro_batches);
}

std::string program_of(const Plan& plan) { return to_text(lower(plan, plain_stack())); }

std::string four_stages(const std::string& primitives) {
  return R"~({"stages": ["embedding, layers.0", "layers.1", "layers.2", "layers.3, head"],
             "primitives": [{"op-assign": "stage(i)", "device": "i"}, )~" +
         primitives + "]}";
}

}  // namespace

TEST_CASE("nnScaler's table 2 with the batch dimension is data parallelism") {
  const model::Graph graph = model::gpt(small_gpt);
  const Plan plan = plan_from(graph, R"~({"primitives": [
    {"op-trans": "**", "dim": "b", "parts": 4, "axis": "data"},
    {"op-assign": "**", "axis": "data", "stride": 1}]})~");
  CHECK(device_count(plan) == 4);
  CHECK(program_of(plan) == program_of(plan_of(graph, R"~({"data": 4})~")));
}

TEST_CASE(
    "nnScaler's tables 3 and 4 are 1F1B, and with stages from 1, one micro-batch more in flight") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto table_4 = [](const std::string& ofst) {
    const std::string let = R"~(, "let": {"ofst": ")~" + ofst + "\"}}";
    return four_stages(R"~({"op-order": ["F(i, m)", "F(i, m+1)"]},
      {"op-order": ["B(i, m)", "B(i, m+1)"]},
      {"op-order": ["F(i, m+ofst)", "B(i, m)"])~" +
                       let + R"~(, {"op-order": ["B(i, m)", "F(i, m+ofst+1)"])~" + let);
  };
  const Plan canonical = plan_from(graph, table_4("S-1-i"), 8);
  CHECK(program_of(canonical) == program_of(plan_of(graph, R"~({"pipeline": 4})~", 8)));
  const Program literal = lower(plan_from(graph, table_4("S-i"), 8), plain_stack());
  CHECK_THAT(lowering::cells_of(literal, 0), StartsWith("F0 F1 F2 F3 F4 B0 F5 B1"));
  CHECK_THAT(lowering::cells_of(literal, 3), StartsWith("F0 F1 B0 F2 B1"));
}

TEST_CASE("nnScaler's table 6 divides an embedding over the devices of all stages") {
  const model::Graph graph = model::gpt(small_gpt);
  const Plan plan = plan_from(graph, R"~({
    "stages": ["embedding", "layers.[0-1]", "layers.[2-3], head"],
    "primitives": [
      {"op-trans": "embedding.lookup", "dim": "vocabulary", "parts": 2, "axis": "all"},
      {"op-trans": "embedding.{add_positions,dropout}", "dim": null, "parts": 2, "axis": "all"},
      {"op-assign": "embedding.**", "axis": "all", "stride": 1},
      {"op-assign": "embedding.**", "device": 0},
      {"op-assign": "stage(i)", "device": "i-1", "where": "i > 0"}]})~");
  CHECK(devices_of(plan, 0, 0) == std::vector{0, 1});
  CHECK(devices_of(plan, 1, 0) == std::vector{0});
  CHECK(devices_of(plan, 2, 0) == std::vector{1});
}

TEST_CASE("nnScaler's table 7, with what it leaves open, is 3F1B") {
  model::Graph graph = model::gpt(small_gpt);
  graph.forward_repeats = 3;
  const Plan named = plan_of(graph, R"~({"pipeline": 4, "schedule": "3f1b"})~", 6);
  const std::string text = file_text(named);
  for (const std::string rule :
       {R"~(["F1(i, m+2)","F2(i, m+1)"])~", R"~(["F2(i, m+1)","F3(i, m)"])~",
        R"~(["F3(i, m+ofst)","B(i, m)"], "let": {"ofst":"S-1-i"})~"})
    CHECK_THAT(text, ContainsSubstring(rule));
  CHECK(program_of(plan_from(graph, text, 6)) == program_of(named));
}

TEST_CASE("nnScaler's table 5 is co-shard") {
  const model::Graph graph = model::gpt(small_gpt);
  std::string primitives = R"~({"primitives": [
    {"op-trans": "layers.*.attention.scores", "dim": "heads", "parts": 2, "colocated": true},
    {"op-trans": "layers.*.mlp.gelu", "dim": "n", "parts": 2, "colocated": true})~";
  for (const std::string part :
       {"attention.**.part0", "attention.**.part1", "mlp.*.**.part0", "mlp.*.**.part1"})
    primitives += R"~(, {"op-trans": "layers.*.)~" + part + R"~(", "recompute": true})~";
  const Plan plan = plan_from(graph, primitives + "]}");
  CHECK(program_of(plan) == program_of(plan_of(graph, R"~({"coshard": 2})~")));
}

TEST_CASE("the batch is divided among as many ranks as the operator that divides it most") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto ranks = [&](const std::string& text) {
    return batch_ranks(JsonReader::from_text(text, "plan.json"), graph);
  };
  const std::string all = R"~({"op-trans": "**", "dim": "b", "parts": 3, "axis": "data"})~";
  const std::string one =
      R"~({"op-trans": "layers.0.mlp.gelu", "dim": "b", "parts": 2, "axis": "t"})~";
  CHECK(ranks(R"~({"primitives": []})~") == 1);
  CHECK(ranks("{\"primitives\": [" + all + "]}") == 3);
  CHECK(ranks("{\"primitives\": [" + all + ", " + one + "]}") == 6);
  CHECK(ranks("{\"primitives\": [" + one + "]}") == 2);
  CHECK(ranks(file_text(plan_of(graph, R"~({"tensor": 2, "data": 3, "pipeline": 4})~"))) == 3);
}

TEST_CASE("uneven parts are kept in the plan and lowered") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto split = [](const std::string& uneven) {
    return R"~({"primitives": [{"op-trans": "**", "dim": "b", "parts": 5, "uneven": )~" + uneven +
           R"~(, "axis": "data"}, {"op-assign": "**", "axis": "data", "stride": 1}]})~";
  };
  const Plan plan = plan_from(graph, split("true"));
  CHECK(plan.placement(0).uneven == std::vector{true});
  CHECK_THAT(file_text(plan), ContainsSubstring("\"uneven\": true"));
  // 12 samples on 5 devices: 3, 3, 2, 2, 2.
  const Program program = lower(plan, plain_stack());
  REQUIRE(program.devices.size() == 5);
  CHECK(close(hardware_flops(program), hardware_flops(lowering::lowered(graph, "{}")), 1e-12));
  CHECK_THAT(refusal([&] { plan_from(graph, split("false")); }),
             ContainsSubstring("5 equal parts"));
}

TEST_CASE("inner parts are kept in the plan, and are of one axis for a dimension") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto split = [](const std::string& axes) {
    std::string text = R"~({"primitives": [)~";
    for (const char axis : axes) {
      const std::string name = std::string("\"axis\": \"") + axis + "\"";
      text += R"~({"op-trans": "**", "dim": "b", "parts": 2, "inner": true, )~" + name +
              R"~(}, {"op-assign": "**", "stride": 1, )~" + name + "}, ";
    }
    return text.substr(0, text.size() - 2) + "]}";
  };
  const Plan plan = plan_from(graph, split("x"));
  CHECK(plan.placement(0).inner == std::vector{true});
  CHECK_THAT(file_text(plan), ContainsSubstring("\"inner\": true"));
  CHECK_THAT(refusal([&] { plan_from(graph, split("xy")); }),
             ContainsSubstring("inner parts along one axis"));
}

TEST_CASE("a ring names the one axis that divides the tokens, and its error the axes there are") {
  model::GptConfig config = small_gpt;
  config.fused_attention = true;
  const model::Graph graph = model::gpt(config);
  const auto with_ring = [](const std::string& of, const std::string& axis,
                            const std::string& operators) {
    std::string text = R"~({"primitives": [)~";
    for (const char* name : {"near", "far"}) {
      text += R"~({"op-trans": "**", "dim": ")~" + std::string(of) +
              R"~(", "parts": 2, "axis": ")~" + name + R"~("}, {"op-assign": "**", "stride": )~" +
              (name[0] == 'n' ? "1" : "2") + R"~(, "axis": ")~" + name + "\"}, ";
    }
    return text + R"~({"op-order": ")~" + operators + R"~(", "ring": ")~" + axis + "\"}]}";
  };
  const std::string core = "layers.*.attention.core";
  CHECK_THAT(refusal([&] { plan_from(graph, with_ring("b", "nearer", core)); }),
             ContainsSubstring("stands: near and far, found nearer"));
  CHECK_THAT(refusal([&] { plan_from(graph, with_ring("b", "near", core)); }),
             ContainsSubstring("near to divide the tokens (s) of"));
  CHECK_THAT(refusal([&] { plan_from(graph, with_ring("s", "near", core)); }),
             ContainsSubstring("and no other axis, found near and far"));
  CHECK_THAT(refusal([&] { plan_from(graph, with_ring("b", "near", "layers.*.mlp.fc1")); }),
             ContainsSubstring("expected fused attention"));
}

TEST_CASE("every part may have a device of its own, and is written as it is read") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto text = [](const std::string& devices) {
    return R"~({"primitives": [
      {"op-trans": "**", "dim": "b", "parts": 3, "axis": "data"},
      {"op-assign": "**", "devices": )~" +
           devices + "}]}";
  };
  const Plan plan = plan_from(graph, text("[1, 2, 0]"));
  CHECK(plan.placement(0).listed == std::vector<std::vector<int>>{{1, 2, 0}});
  const Program program = lower(plan, plain_stack());
  REQUIRE(program.devices.size() == 3);
  CHECK(close(hardware_flops(program), hardware_flops(lowering::lowered(graph, "{}")), 1e-12));
  const std::string written = file_text(plan);
  CHECK(file_text(plan_from(graph, written)) == written);
  CHECK(program_of(plan_from(graph, written)) == program_of(plan));
  CHECK_THAT(refusal([&] { plan_from(graph, text("[0, 1]")); }),
             ContainsSubstring("a device for each of the 3 parts"));
  CHECK_THAT(refusal([&] { plan_from(graph, text("[0, 1, 1]")); }),
             ContainsSubstring("two on device 1"));
}

TEST_CASE("token slices and chains with slices are written as they are read") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::string text = R"~({
  "stages": [
    "**"
  ],
  "primitives": [
    {"op-assign": "stage(0)", "device": 0},
    {"op-trans": "micro-batches", "tokens": [12,8]},
    {"op-order": "F(0,0,0) F(0,0,1) B(0,0,1) B(0,0,0)"}
  ]
}
)~";
  CHECK(file_text(plan_from(graph, text)) == text);
  CHECK_THAT(refusal([&] {
               plan_from(graph, R"~({"primitives": [
      {"op-trans": "micro-batches", "tokens": [12, 8]}, {"op-order": "F(0,0) B(0,0)"}]})~");
             }),
             StartsWith("plan.json: /primitives/1: expected a stage, a micro-batch and a slice"));
}

TEST_CASE("segments that run again together and divided checkpoints are written as they are read") {
  const model::Graph graph = model::gpt(small_gpt);
  const std::string text = R"~({
  "stages": [
    "**"
  ],
  "primitives": [
    {"op-trans": "**", "dim": null, "parts": 2, "axis": "pair"},
    {"op-assign": "**", "axis": "pair", "stride": 1},
    {"op-assign": "stage(0)", "device": 0},
    {"op-trans": "layers.**", "recompute": true, "segments": 2},
    {"keep": "checkpoints", "divided": ["pair"]}
  ]
}
)~";
  const Plan plan = plan_from(graph, text);
  CHECK(file_text(plan) == text);
  CHECK(plan.recomputed() == plan_of(graph, R"~({"recompute": {"every": 2}})~").recomputed());
  const auto refused = [&](const std::string& primitive) {
    return refusal([&] { plan_from(graph, "{\"primitives\": [" + primitive + "]}"); });
  };
  CHECK_THAT(refused(R"~({"op-trans": "layers.*.**", "recompute": true, "segments": 3})~"),
             StartsWith("plan.json: /primitives/0/segments: expected a divisor of the number of "
                        "segments that are named, found 3 for 4"));
  CHECK_THAT(refused(R"~({"op-trans": "layers.*.mlp.**", "recompute": true, "segments": 2})~"),
             StartsWith("plan.json: /primitives/0: expected a recomputed group of one segment, or "
                        "of all operators of consecutive ones of a stage, found one without"));
  CHECK_THAT(refused(R"~({"op-trans": "layers.*.**", "recompute": true, "segments": 0})~"),
             StartsWith("plan.json: /primitives/0/segments: expected"));
  CHECK_THAT(refused(R"~({"op-trans": "layers.*.mpl.**", "recompute": true})~"),
             ContainsSubstring("did you mean \"layers.*.mlp.**\"?"));
  CHECK_THAT(refused(R"~({"keep": "checkpoints", "divided": ["pair"]})~"),
             StartsWith("plan.json: /primitives/0/divided/0: expected an axis that an op-trans"));
  CHECK_THAT(refusal([&] {
               plan_from(graph, four_stages(
                                    R"~({"op-trans": "layers.*.**", "recompute": true,
                                         "segments": 2})~"));
             }),
             ContainsSubstring("layers.0 and layers.1 of two stages"));
}

TEST_CASE("a chain may be a list, and its cells may be arithmetic") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto chains = [&](const std::string& order) {
    return plan_from(graph, R"~({"primitives": [{"op-order": )~" + order + "}]}", 4)
        .orders()
        .chains;
  };
  const std::vector<Cell> cells = {{0, 0}, {0, 1}, {0, 3, placement::CellPass::backward}};
  CHECK(chains(R"~("F(0,0) F(0, 1) B(S-1, M-1)")~") == std::vector<std::vector<Cell>>{cells});
  CHECK(chains(R"~(["F(0,0)", "F(0,1)", "B(0,min(3, M))"])~") ==
        std::vector<std::vector<Cell>>{cells});
  CHECK(chains(R"~(["F(0,0) F(0,1)", "B(0,3)"])~") == std::vector<std::vector<Cell>>{cells});
  CHECK(chains(R"~(["F(0,0)", "B(0,3)"])~").empty());  // a rule
}

TEST_CASE("devices of stages are told by a formula where one is easily found") {
  const auto formulas = [](const std::vector<std::optional<int>>& devices) {
    std::string text;
    for (const DeviceFormula& one : device_formulas(devices)) {
      text += std::to_string(one.first) + "-" + std::to_string(one.last) + ": " +
              (one.formula.empty() ? std::to_string(one.device) : one.formula) + "; ";
    }
    return text;
  };
  CHECK(formulas({0}) == "0-0: 0; ");
  CHECK(formulas({0, 4, 8, 12}) == "0-3: 4*i; ");
  CHECK(formulas({12, 8, 4, 0}) == "0-3: 4*(S-1-i); ");
  CHECK(formulas({0, 2, 4, 0, 2, 4}) == "0-5: 2*(i % 3); ");
  CHECK(formulas({7, 7, 7}) == "0-2: 7; ");
  CHECK(formulas({0, 1, 2, 2, 1, 0}) == "0-2: i; 3-5: S-1-i; ");
  CHECK(formulas({5, 0, {}, 3}) == "0-0: 5; 1-1: 0; 3-3: 3; ");
}

}  // namespace stratagem::strategies::plan_file_test

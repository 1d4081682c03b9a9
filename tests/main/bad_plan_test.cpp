// Whatever a user can get wrong in a plan file: one line with the path of the primitive; exit 1.
#include "tests/main/executable.hpp"

using namespace stratagem;

namespace {

/// Four GPUs, two stages of two: a plan that works, to be broken.
const std::string sound_plan = R"~({
  "stages": ["embedding, layers.0", "layers.1, head"],
  "primitives": [
    {"op-trans": "**", "dim": "b", "parts": 2, "axis": "data"},
    {"op-assign": "**", "axis": "data", "stride": 1},
    {"op-assign": "stage(i)", "device": "2*i"},
    {"op-order": ["F(i, m+ofst)", "B(i, m)"], "let": {"ofst": "S-1-i"}},
    {"op-order": ["B(i, m)", "F(i, m+ofst+1)"], "let": {"ofst": "S-1-i"}},
    {"op-order": ["F(i, m)", "F(i, m+1)"]},
    {"op-order": ["B(i, m)", "B(i, m+1)"]}
  ]
})~";

Ran simulate(const std::string& plan, const std::string& run_keys = "") {
  const TemporaryFolder folder;
  folder.write("p.json", plan);
  const std::string strategy =
      R"~("strategy": {"tensor": 2, "data": 2, "overlap_gradients": true, "bucket": "25 MiB"})~";
  folder.write("a.json", with(small_scenario(), strategy, R"~("plan": "p.json")~" + run_keys));
  return run("simulate a.json", folder);
}

/// Checks that a plan is refused with one line that begins with a place and has all the parts.
void refuses_plan(const std::string& plan, const std::string& place,
                  const std::vector<std::string>& parts, const std::string& run_keys = "") {
  const Ran ran = simulate(plan, run_keys);
  INFO(ran.err);
  CHECK(ran.exit == 1);
  CHECK((ran.out.empty() || ran.out.find("\n  refused: ") != std::string::npos));
  CHECK(std::ranges::count(ran.err, '\n') == 1);
  CHECK_THAT(ran.err, StartsWith(place + ": expected "));
  for (const std::string& part : parts) CHECK_THAT(ran.err, ContainsSubstring(part));
}

/// The sound plan with one part replaced.
std::string but(const std::string& part, const std::string& other) {
  return with(sound_plan, part, other);
}

const std::string split = R"~({"op-trans": "**", "dim": "b", "parts": 2, "axis": "data"})~";

}  // namespace

TEST_CASE("the sound plan itself is fine") {
  const Ran ran = simulate(sound_plan);
  INFO(ran.err);
  CHECK(ran.exit == 0);
}

TEST_CASE("a run with a plan and a strategy is refused") {
  refuses_plan(sound_plan, "a.json: /runs/1/plan", {"a plan or a strategy, not both"},
               R"~(, "strategy": {"data": 4})~");
}

TEST_CASE("a plan for another number of GPUs is refused") {
  refuses_plan(but(R"~("2*i")~", "0"), "a.json: /runs/1/plan",
               {"a plan for the cluster's 4 GPUs", "found 2 devices"});
}

TEST_CASE("an unknown selector is refused, and the nearest named") {
  refuses_plan(but(R"~("op-trans": "**")~", R"~("op-trans": "layers.*.mlp.fc3")~"),
               "p.json: /primitives/0/op-trans", {R"~(did you mean "layers.*.mlp.fc1"?)~"});
  refuses_plan(but(R"~("stage(i)")~", R"~("stage(i+1)")~"), "p.json: /primitives/2/op-assign",
               {"a stage from 0 to 1", "found 2"});
  refuses_plan(but("layers.1, head", "layer.1, head"), "p.json: /stages/1",
               {R"~(did you mean "layers.1"?)~"});
}

TEST_CASE("a segment in no stage, or in two, is refused") {
  refuses_plan(but("layers.1, head", "head"), "p.json: /stages", {"found layers.1 in none"});
  refuses_plan(but("layers.1, head", "layers.*, head"), "p.json: /stages/1",
               {"layers.0, in stage 0 too"});
}

TEST_CASE("a split of a dimension that may not be split is refused") {
  refuses_plan(but(split, split + R"~(,
    {"op-trans": "layers.*.attention.softmax", "dim": "t", "parts": 2, "axis": "tensor"})~"),
               "p.json: /primitives/1", {"a splittable dimension t", "t^"});
}

TEST_CASE("an uneven split is refused unless it is said to be one") {
  const std::string three = with(split, "\"parts\": 2", "\"parts\": 3");
  const std::string heads =
      R"~({"op-trans": "layers.0.attention.scores", "dim": "heads", "parts": 3,)~"
      R"~( "axis": "tensor"})~";
  refuses_plan(but(split, split + ", " + heads), "p.json: /primitives/1",
               {"dimension heads", "3 equal parts", "found 4"});
  // Said to be one it passes, up to the op-assign that is missing.
  refuses_plan(but(split, split + ", " + with(heads, "3,", "3, \"uneven\": true,")),
               "p.json: /primitives/1",
               {"an op-assign of axis \"tensor\" of layers.0.attention.scores"});
}

TEST_CASE("unequal parts are refused where the plan does not say that they may be") {
  const std::string three = R"~(, "cluster": {"gpus": 3}, "training": {"global_batch": 2})~";
  refuses_plan(R"~({"primitives": [
    {"op-trans": "embedding.**, head.**, layers.*.*, layers.*.attention.**, )~"
               R"~(layers.*.mlp.fc*.**, layers.*.mlp.{dropout,residual}",
     "dim": null, "parts": 3, "axis": "tensor"},
    {"op-trans": "layers.*.mlp.gelu", "dim": "n", "parts": 3, "axis": "tensor"},
    {"op-assign": "**", "axis": "tensor", "stride": 1}]})~",
               "p.json: /primitives/1", {"mlp.gelu", "to divide into 3 equal parts"}, three);
}

TEST_CASE("orders that contradict each other are refused at what closes the cycle") {
  // /primitives/3 and 4 have F(1,0) before B(1,0) before F(1,1); 5 the other way round.
  refuses_plan(but(R"~("F(i, m)", "F(i, m+1)")~", R"~("F(i, m+1)", "F(i, m)")~"),
               "p.json: /primitives/5",
               {"op-orders without a cycle", "F(stage 1, micro-batch 0)", " before "});
  // Data has F(0,1) before F(1,1); what follows is right and not told.
  refuses_plan(but(R"~({"op-order": ["F(i, m)", "F(i, m+1)"]})~",
                   R"~({"op-order": "F(1,1) F(0,1)"}, {"op-order": "F(0,0) F(0,1)"})~"),
               "p.json: /primitives/5",
               {"F(stage 0, micro-batch 1)", "F(stage 1, micro-batch 1)", " on devices 2 to 3"});
}

TEST_CASE("of a long cycle its ends are shown, and how much lies between") {
  const std::string last = R"~({"op-order": ["B(i, m)", "B(i, m+1)"]})~";
  const std::string plan = but(last, last + R"~(, {"op-order": "B(0,M-1) F(0,0)"})~");
  const std::string long_run = R"~(, "training": {"global_batch": 64})~";
  const Ran ran = simulate(plan, long_run);
  CHECK(ran.err.size() < 600);
  refuses_plan(plan, "p.json: /primitives/7", {" others before ", "F(stage 0, micro-batch 0)"},
               long_run);
}

TEST_CASE("a device and a list of devices for one operator are told to exclude each other") {
  refuses_plan(but(R"~("device": "2*i")~", R"~("device": "2*i", "devices": [0, 1])~"),
               "p.json: /primitives/2/devices", {"\"device\" or \"devices\", not both"});
}

TEST_CASE("what closes a cycle is told apart from what stands before and behind it") {
  // The chain comes first and is right with data alone; /primitives/5 has B(1,0) before F(1,1),
  // which is before B(1,1).
  const std::string device = R"~({"op-assign": "stage(i)", "device": "2*i"})~";
  refuses_plan(but(device, device + R"~(, {"op-order": "B(1,1) B(1,0)"})~"),
               "p.json: /primitives/5", {"B(stage 1, micro-batch 0)", "F(stage 1, micro-batch 1)"});
  // Cells that run together are one: F(1,0) comes before B(1,0), which comes before B(1,1).
  const std::string last = R"~({"op-order": ["B(i, m)", "B(i, m+1)"]})~";
  refuses_plan(but(last, last + R"~(, {"op-order": "F(1,0)+B(1,1)"})~"), "p.json: /primitives/7",
               {"op-orders without a cycle", "stage 1, micro-batch 0"});
}

TEST_CASE("without a flush a cycle through several iterations is refused at what closes it") {
  // /primitives/4 has B(1,m) before F(1,m+1), 6 that before F(1,m+2), 7 that before B(1,m): of two
  // micro-batches an iteration only several iterations show it.
  refuses_plan(but(R"~({"op-order": ["F(i, m)", "F(i, m+1)"]})~",
                   R"~({"op-order": "updates", "flush": false, "version": "latest"},
                  {"op-order": ["F(i, m)", "F(i, m+1)"]},
                  {"op-order": ["F(i, m+2)", "B(i, m)"]})~"),
               "p.json: /primitives/7", {"op-orders without a cycle"});
}

TEST_CASE("cells that nothing orders are refused with both") {
  refuses_plan(but(R"~(,
    {"op-order": ["B(i, m)", "B(i, m+1)"]})~",
                   ""),
               "p.json: /primitives", {"an op-order between"});
}

TEST_CASE("an order that is not of the language is refused at its primitive") {
  refuses_plan(but(R"~("F(i, m)", "F(i, m+1)")~", R"~("F(i, m)", "F(i, m)")~"),
               "p.json: /primitives/5", {"two cells"});
  refuses_plan(but(R"~("F(i, m)", "F(i, m+1)")~", R"~("F(i, m)", "G(i, m+1)")~"),
               "p.json: /primitives/5", {"a pass F, B, W"});
  refuses_plan(but(R"~(["F(i, m)", "F(i, m+1)"])~", R"~("F(0,0) F(0,1) F(0,2)")~"),
               "p.json: /primitives/5", {"a micro-batch from 0 to 1 in \"F(0,2)\"", "found 2"});
  refuses_plan(but(R"~(["F(i, m)", "F(i, m+1)"])~", R"~("F(0,0) W(0,0)")~"),
               "p.json: /primitives/5", {"W cells of backward cells that are split"});
  refuses_plan(but(R"~(["F(i, m)", "F(i, m+1)"])~", R"~("F(0,0)+F(0,1)+B(0,0)")~"),
               "p.json: /primitives/5", {"two cells that run together", "a third, B(0,0)"});
}

TEST_CASE("shards over axes that are not there, twice or none are refused at their axes") {
  const auto over = [](const std::string& axes, const std::string& place, const std::string& what) {
    refuses_plan(but(split, split + R"~(, {"op-trans": "steps", "over": )~" + axes + "}"), place,
                 {what});
  };
  over(R"~(["dta"])~", "p.json: /primitives/1/over/0", "an axis that an op-trans before has made");
  over(R"~(["data", "data"])~", "p.json: /primitives/1/over/1", "each axis once");
  over("[]", "p.json: /primitives/1/over", "an axis at least");
  const std::string once = R"~(, {"op-trans": "steps", "over": ["data"]})~";
  refuses_plan(but(split, split + once + once), "p.json: /primitives/2",
               {"one primitive that divides all steps"});
  refuses_plan(but(split, R"~({"op-trans": "steps", "over": ["data"]}, )~" + split),
               "p.json: /primitives/0/over/0", {"an axis that an op-trans before has made"});
  const std::string host = R"~(, {"op-assign": "steps", "to": "host"})~";
  refuses_plan(but(split, split + host + host), "p.json: /primitives/2",
               {"one primitive that assigns all steps"});
  const std::string swap = R"~(, {"keep": "activations", "of": "layers.*", "where": "host"})~";
  refuses_plan(but(split, split + swap + swap), "p.json: /primitives/2/of",
               {"one rule for each segment"});
}

TEST_CASE("a rule for a cell that is not there, or keeps nothing, is refused at its cells") {
  const auto lends = [](const std::string& cells, const std::string& what) {
    refuses_plan(but(split, split + R"~(, {"keep": "activations", "where": 1, "cells": ")~" +
                                cells + R"~("})~"),
                 "p.json: /primitives/1/cells", {what});
  };
  lends("F(0, 0) F(0, M)", "a micro-batch from 0 to 1 in \"F(0, M)\"");
  lends("B(0, 0)", "forward cells");
  lends("F(1, 0)", "cells of other stages than the one that takes in");
  lends("F(0, 0) F(0, 0)", "one rule for each cell");
  refuses_plan(but(split, split + R"~(, {"keep": "activations", "where": 2, "cells": "F(0, 0)"})~"),
               "p.json: /primitives/1/where", {"a whole number from 0 to 1, found 2"});
}

TEST_CASE("parts on one device that do not divide, or come too late, are refused") {
  const auto parts = [](const std::string& operators, const std::string& dim, int count) {
    return R"~({"op-trans": ")~" + operators + R"~(", "dim": ")~" + dim + R"~(", "parts": )~" +
           std::to_string(count) + R"~(, "colocated": true})~";
  };
  const std::string attention = "layers.*.attention.scores";
  const std::string heads = parts(attention, "heads", 2);
  refuses_plan(but(split, parts(attention, "heads", 3) + ", " + split), "p.json: /primitives/0",
               {"dimension ", "3 equal parts"});
  refuses_plan(but(split, parts("layers.*.mlp_norm", "h", 2) + ", " + split),
               "p.json: /primitives/0/op-trans",
               {"can divide dimension h", "found layers.0.mlp_norm ("});
  refuses_plan(but(split, heads + ", " + heads + ", " + split), "p.json: /primitives/1",
               {"in parts on one device once", " twice"});
  refuses_plan(but(split, split + ", " + heads), "p.json: /primitives/1",
               {"before all that is said of operators"});
  refuses_plan(but(split, with(heads, "true", "false")), "p.json: /primitives/0/colocated",
               {"true"});
}

TEST_CASE("parts that stand nowhere are refused at what split them") {
  refuses_plan(but(R"~(
    {"op-assign": "**", "axis": "data", "stride": 1},)~",
                   ""),
               "p.json: /primitives/0", {"an op-assign of axis \"data\" of ", "stand nowhere"});
  refuses_plan(but(R"~("stage(i)", "device": "2*i")~", R"~("stage(1)", "device": 2)~"),
               "p.json: /primitives", {"an op-assign of embedding.", " to a device"});
}

TEST_CASE("what is assigned twice is refused at the second") {
  const std::string assign = R"~({"op-assign": "**", "axis": "data", "stride": 1})~";
  refuses_plan(but(assign, assign + ", " + assign), "p.json: /primitives/2",
               {"one op-assign of axis \"data\"", "another one in /primitives/1"});
  const std::string device = R"~({"op-assign": "stage(i)", "device": "2*i"})~";
  refuses_plan(but(device, device + R"~(, {"op-assign": "head.**", "device": 3})~"),
               "p.json: /primitives/3", {"to a device", "another one in /primitives/2"});
  refuses_plan(but("\"stride\": 1", "\"stride\": 0"), "p.json: /primitives/1",
               {"on devices of their own", "two on device 0"});
}

TEST_CASE("an axis that nothing has made, or made twice, is refused") {
  refuses_plan(but(R"~("**", "axis": "data", "stride")~", R"~("**", "axis": "tensor", "stride")~"),
               "p.json: /primitives/1", {"an axis along which an op-trans has split"});
  refuses_plan(but(split, split + ", " + split), "p.json: /primitives/1",
               {"not split yet", "split by /primitives/0"});
}

TEST_CASE("keys that are missing or unknown are refused at the primitive") {
  refuses_plan(but(R"~("op-trans": "**", )~", ""), "p.json: /primitives/0",
               {R"~("op-trans", "op-assign", "op-order")~"});
  refuses_plan(but(R"~("dim": "b", )~", ""), "p.json: /primitives/0", {"\"dim\"", "\"recompute\""});
  refuses_plan(but(R"~("parts": 2, )~", ""), "p.json: /primitives/0", {"the key \"parts\""});
  refuses_plan(but(R"~("axis": "data"})~", R"~("axis": "data", "unevn": true})~"),
               "p.json: /primitives/0/unevn", {"did you mean \"uneven\"?"});
}

TEST_CASE("a stage that takes micro-batches in another order than they are sent is refused") {
  const std::string in_order = R"~({"op-order": ["F(i, m)", "F(i, m+1)"]},)~";
  const std::string alternating =
      R"~({"op-order": ["F(i, m+ofst)", "B(i, m)"], "let": {"ofst": "S-1-i"}},
    {"op-order": ["B(i, m)", "F(i, m+ofst+1)"], "let": {"ofst": "S-1-i"}},)~";
  const auto with_second_stage = [&](const std::string& order) {
    const std::string orders = R"~({"op-order": ["F(i, M-1)", "B(i, 0)"]},
    {"op-order": ["F(i, 0)", "B(i, 0)"]},
    {"op-order": ["F(0, m)", "F(0, m+1)"]},
    {"op-order": )~" + order + "},";
    return with(but(alternating, orders), in_order, "");
  };
  const Ran taken = simulate(with_second_stage(R"~(["F(1, m)", "F(1, m+1)"])~"));
  INFO(taken.err);
  CHECK(taken.exit == 0);
  refuses_plan(with_second_stage(R"~(["F(1, m+1)", "F(1, m)"])~"), "p.json: /primitives",
               {"an op-order with F(stage 1, micro-batch 0) before F(stage 1, micro-batch 1)",
                "device 2 runs F(stage 1, micro-batch 1) before F(stage 1, micro-batch 0)"});
}

TEST_CASE("what only the lowering can refuse is told with the primitive that said it") {
  const std::string last = R"~({"op-order": ["B(i, m)", "B(i, m+1)"]})~";
  const auto refused = [&](const std::string& place, const std::string& what,
                           const std::string& more) {
    refuses_plan(but(last, last + ", " + more), "p.json: /primitives/" + place, {what});
  };
  refused("7", "slices that add up to", R"~({"op-trans": "micro-batches", "tokens": [1, 1]})~");
  refused("7", "gradients that ranks divide",
          R"~({"op-trans": "gradients", "overlap": true, "bucket": "1 MiB", "buffers": 2})~");
}

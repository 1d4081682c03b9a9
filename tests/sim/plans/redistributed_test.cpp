// Legal plans that redistribute tensors between stages and once went wrong.
#include "model/builder.hpp"
#include "sim/engine.hpp"
#include "strategies/language/plan_file.hpp"
#include "tests/sim/found_volume.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

namespace {

constexpr std::int64_t rows = 24;
constexpr std::int64_t columns = 4;

/// A segment for every text, with an operator for every letter: b adds a bias, which leaves
/// gradients as they are, g is a GELU.
model::Graph chain_of(const std::vector<std::string>& segments) {
  constexpr model::DataType type = model::DataType::fp16;
  const std::vector<std::int64_t> shape = {rows, columns};
  model::Builder build("chain");
  model::TensorId x = -1;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    build.begin_segment("s" + std::to_string(s));
    if (s == 0) x = build.tensor("input", shape, type, model::Role::input);
    for (std::size_t i = 0; i < segments[s].size(); ++i) {
      const std::string name = segments[s].substr(i, 1) + std::to_string(i);
      const model::TensorId y = build.tensor(name + ".out", shape, type, model::Role::activation);
      if (segments[s][i] == 'g') {
        build.add(model::OpKind::gelu, name, "b n -> b n", {x}, {y});
      } else {
        const model::TensorId bias = build.parameter(name + ".p", {columns}, type);
        build.add(model::OpKind::bias_add, name, "b n, n -> b n", {x, bias}, {y});
      }
      x = y;
    }
  }
  return std::move(build).finish(x);
}

program::Program lowered(const model::Graph& graph, const std::string& plan, int micro_batches) {
  const JsonReader file = JsonReader::from_text(plan, "plan.json");
  return lowering::lower(strategies::read_plan(file, graph, micro_batches), {});
}

}  // namespace

TEST_CASE("gradients of stages that share a device are summed along the axes of each") {
  // Device 0 stands in both. Its terms of b0 of stage 0 are summed with device 1, those of stage 1
  // with device 2; one bucket, by the number of the axis, takes both.
  const program::Program program =
      lowered(chain_of({"b", "gbg"}), R"~({"stages": ["s0", "s1"], "primitives": [
    {"op-trans": "**", "dim": "b", "parts": 2, "axis": "rows"},
    {"op-trans": "s1.**", "dim": null, "parts": 2, "axis": "replicas"},
    {"op-assign": "s0.**", "axis": "rows", "stride": 1},
    {"op-assign": "s1.**", "axis": "rows", "stride": 2},
    {"op-assign": "s1.**", "axis": "replicas", "stride": 1},
    {"op-order": "F(0,0) F(1,0) B(1,0) B(0,0)"}]})~",
              1);
  // A sum of 8 bytes over two devices: 2 (2-1)/2 of them from each. Stage 1 is on all four devices.
  for (int device = 0; device < 4; ++device)
    CHECK(volumes_on(program, device).gradients == (device < 2 ? 2 : 1) * 8);
}

TEST_CASE("gradients of stages on one set of devices are summed along the axes of each") {
  // All four devices have terms of the 4 elements of stage 0's bias, two and two those of stage
  // 1's: 2 (n-1)/n of 8 bytes each. One bucket takes both, and nothing refuses the plan.
  const program::Program program =
      lowered(chain_of({"b", "gbg"}), R"~({"stages": ["s0", "s1"], "primitives": [
    {"op-trans": "s0.**", "dim": "b", "parts": 4, "axis": "rows"},
    {"op-trans": "s1.**", "dim": "b", "parts": 2, "axis": "rows"},
    {"op-trans": "s1.**", "dim": null, "parts": 2, "axis": "replicas"},
    {"op-assign": "s0.**", "axis": "rows", "stride": 1},
    {"op-assign": "s1.**", "axis": "rows", "stride": 2},
    {"op-assign": "s1.**", "axis": "replicas", "stride": 1},
    {"op-order": "F(0,0) F(1,0) B(1,0) B(0,0)"}]})~",
              1);
  for (int device = 0; device < 4; ++device)
    CHECK(volumes_on(program, device).gradients == 2 * 3.0 / 4 * 8 + 2 * 1.0 / 2 * 8);
}

constexpr double whole_tensor = rows * columns * 2;  // bytes of the tensor that passes through

/// What a device receives from others, but for sums of gradients.
double received(const program::Program& program, int device) {
  double bytes = 0;
  each_collective(program, device,
                  [&](const auto& /*block*/, const auto& task, const auto& collective, double n) {
                    if (task.stream == program::Stream::gradient_communication) return;
                    if (collective.kind == cost::CollectiveKind::send && sends(task.stream)) return;
                    const int group = program.devices[device].groups[collective.group];
                    const bool one_sends = collective.kind == cost::CollectiveKind::broadcast;
                    if (one_sends && program.communicators[group].ranks.front() == device) return;
                    bytes += one_sends ? collective.payload.value : moved(collective, n);
                  });
  return bytes;
}

TEST_CASE("a gradient crosses one border after another unchanged") {
  // Of a tensor one redistribution and one border are remembered, but a bias passes on the gradient
  // that it gets: from stage 2 to stage 1, from there to stage 0.
  const program::Program program =
      lowered(chain_of({"b", "b", "g"}), R"~({"stages": ["s0", "s1", "s2"], "primitives": [
    {"op-trans": "s1.**", "dim": null, "parts": 2, "axis": "replicas"},
    {"op-trans": "s2.**", "dim": "b", "parts": 3, "axis": "rows"},
    {"op-assign": "s1.**", "axis": "replicas", "stride": 1},
    {"op-assign": "s2.**", "axis": "rows", "stride": 1},
    {"op-assign": "stage(i)", "device": "i*(i+1)/2"},
    {"op-order": ["F(i, 0)", "B(i, 0)"]}]})~",
              1);
  // Stage 0 gets the gradient; both replicas of stage 1 get the tensor and its gradient; each
  // device of stage 2 a third of the tensor at least, for grids of two and of three devices share
  // no finer layout.
  CHECK(received(program, 0) == whole_tensor);
  for (const int device : {1, 2}) CHECK(received(program, device) == 2 * whole_tensor);
  for (const int device : {3, 4, 5}) CHECK(received(program, device) >= whole_tensor / 3);
}

TEST_CASE("what reads a gradient that leaves runs in B, and is summed nonetheless") {
  // s1's bias passes on the gradient that it reads, so its own gradient cannot wait for W.
  const program::Program program =
      lowered(chain_of({"b", "bg"}), R"~({"stages": ["s0", "s1"], "primitives": [
    {"op-trans": "**", "dim": "b", "parts": 2, "axis": "rows"},
    {"op-assign": "**", "axis": "rows", "stride": 1},
    {"op-assign": "stage(i)", "device": "2*i"},
    {"op-trans": "B(i, m)", "into": ["B", "W"]},
    {"op-order": "F(0,0) B(0,0) W(0,0)"},
    {"op-order": "F(1,0) B(1,0) W(1,0)"}]})~",
              1);
  for (int device = 0; device < 4; ++device)
    CHECK(volumes_on(program, device).gradients == 2 * 1.0 / 2 * 8);
}

TEST_CASE("tensors that take one way between devices for two reasons do not wait for each other") {
  // Device 0 sends F(0,1)'s result and then B(2,0)'s gradient to devices 1 and 2, which run B(1,0)
  // before F(1,1). Messages between equal grids have a group for each pair of stages; what is
  // redistributed has one for each pair of devices.
  const program::Program program =
      lowered(chain_of({"b", "g", "g"}), R"~({"stages": ["s0", "s1", "s2"], "primitives": [
    {"op-trans": "s1.**", "dim": null, "parts": 2, "axis": "replicas"},
    {"op-assign": "s1.**", "axis": "replicas", "stride": 1},
    {"op-assign": "stage(i)", "device": "i % 2"},
    {"op-order": "F(0,0) F(0,1) F(2,0) B(2,0) B(0,0) F(2,1) B(2,1) B(0,1)"},
    {"op-order": "F(1,0) B(1,0) F(1,1) B(1,1)"}]})~",
              2);
  // Of each micro-batch device 0 gets the tensor for stage 2 and the gradient for stage 0, stage
  // 1's replicas the other two; and it comes to an end.
  for (const int device : {0, 1, 2}) CHECK(received(program, device) == 2 * 2 * whole_tensor);
  const Timeline timeline =
      run(program, fold(program, instant_cluster(3), ideal_network(), true),
          price(program, [](const auto&) { return Price{.device = {1}}; }), 2);
  CHECK(timeline.iteration_ends.size() >= 2);
}

}  // namespace stratagem::sim

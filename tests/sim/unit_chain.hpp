// Pipelines of unit cells: a chain of equal segments whose forward, input-gradient and
// weight-gradient operators cost what a test says, and nothing else costs anything.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lowering/lower.hpp"
#include "model/builder.hpp"
#include "sim/engine.hpp"
#include "sim/metrics.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/read_options.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

inline constexpr std::int64_t unit = 1'000'000;  // picoseconds

/// `layers` matrix products in a row, one to a segment, between a first segment that adds a shift,
/// so that all of them have an input gradient, and a last one that bends it. `repeats` > 1: the
/// result is fed back to the first. With `shared_ends` the first and the last segment have two more
/// products between which ranks divide the inner dimension, so that ranks that share them meet at
/// the end of their forward and of their backward passes.
inline model::Graph chain(int layers, int repeats = 1, bool shared_ends = false) {
  using model::OpKind;
  using model::Role;
  model::Builder build("chain");
  const std::vector<std::int64_t> shape = {4, 2, 8};
  build.begin_segment("input");
  const model::TensorId input = build.tensor("input", shape, model::DataType::fp16, Role::input);
  const model::TensorId shift = build.parameter("shift", {8}, model::DataType::fp16);
  model::TensorId x = build.tensor("shifted", shape, model::DataType::fp16, Role::activation);
  build.add(OpKind::bias_add, "shift", "b s n, n -> b s n", {input, shift}, {x});
  const auto product = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    const model::TensorId weight =
        build.parameter(name + ".weight", {out, in}, model::DataType::fp16);
    const model::TensorId y =
        build.tensor(name + ".out", {4, 2, out}, model::DataType::fp16, Role::activation);
    build.add(OpKind::contraction, name, "b s k+, n k+ -> b s n", {x, weight}, {y});
    x = y;
  };
  const auto bend = [&] {
    const model::TensorId y = build.tensor("bent", shape, model::DataType::fp16, Role::activation);
    build.add(OpKind::gelu, "bend", "b s n -> b s n", {x}, {y});
    x = y;
  };
  const auto share = [&](const std::string& end) {
    product("widen " + end, 8, 840);
    product("narrow " + end, 840, 8);
  };
  if (shared_ends) {
    share("input");
    bend();
  }
  for (int i = 0; i < layers; ++i) {
    build.begin_segment("layers." + std::to_string(i));
    product("product", 8, 8);
  }
  build.begin_segment("output");
  if (shared_ends) share("output");
  bend();
  model::Graph graph = std::move(build).finish(x);
  graph.forward_repeats = repeats;
  if (repeats > 1) graph.recycled = {{x, input}};
  return graph;
}

/// Units of time: full backward cells take input + weight.
struct UnitCosts {
  int forward = 1;
  int input = 1;
  int weight = 0;
  int end = 0;  ///< of the forward and the backward pass of a shared end, each
};

inline Prices unit_prices(const program::Program& program, const UnitCosts& costs) {
  return price(program, [&](const program::Task& task) {
    static const std::set<std::string> ends = {"widen input", "widen input.B", "widen output",
                                               "widen output.B"};
    const int time = task.name == "product"     ? costs.forward
                     : task.name == "product.B" ? costs.input
                     : task.name == "product.W" ? costs.weight
                     : ends.contains(task.name) ? costs.end
                                                : 0;
    return Price{.device = {time * unit}};
  });
}

/// A plan on the chain, played on a network that takes no time.
class UnitPipeline {
 public:
  UnitPipeline(program::Program lowered, const UnitCosts& costs, int iterations = 3)
      : program(std::move(lowered)) {
    const auto devices = static_cast<int>(program.devices.size());
    const Folding folding = fold(program, instant_cluster(devices), ideal_network(), false);
    timeline = run(program, folding, unit_prices(program, costs), iterations);
  }

  /// A scenario's strategy on a chain of one layer for each stage.
  UnitPipeline(const std::string& strategy, int layers, int micro_batches, const UnitCosts& costs,
               int repeats = 1)
      : UnitPipeline(lowered(strategy, chain(layers, repeats, costs.end > 0), micro_batches),
                     costs) {}

  static program::Program lowered(const std::string& strategy, const model::Graph& graph,
                                  int micro_batches, const cost::Stack& stack = {}) {
    const JsonReader file = JsonReader::from_text("{\"strategy\": " + strategy + "}", "test");
    const JsonReader reader = file.at("strategy");
    return lowering::lower(
        strategies::compose(graph, micro_batches, strategies::read_options(reader), reader), stack);
  }

  /// Units until the last task of the first iteration has ended.
  [[nodiscard]] double makespan() const { return in_units(timeline.iteration_ends.front()); }
  /// Units from the end of an iteration to the end of the next, at last.
  [[nodiscard]] double period() const {
    const std::vector<Instant>& ends = timeline.iteration_ends;
    return in_units(ends.back()) - in_units(ends[ends.size() - 2]);
  }

  /// Idle units of a device between the begin of its first cell and the end of its last one in the
  /// first iteration.
  [[nodiscard]] double bubble(int device) const {
    double first = 1e300;
    double last = 0;
    double busy = 0;
    for (const Cell& cell : cells(device)) {
      first = std::min(first, cell.begin);
      last = std::max(last, cell.end);
      busy += cell.busy;
    }
    return last - first - busy;
  }

  /// The most (stage, micro-batch) pairs of a device whose last forward cell has begun and whose
  /// last backward cell has not ended, in the first iteration; of stages `first` to `last`.
  [[nodiscard]] int in_flight(int device, int first = 0, int last = 1'000) const {
    std::map<std::pair<int, int>, std::pair<double, double>> lives;
    for (const Cell& cell : cells(device)) {
      if (cell.cell.stage < first || cell.cell.stage > last) continue;
      const std::pair key(cell.cell.stage, cell.cell.micro_batch);
      if (cell.cell.pass == placement::CellPass::forward) {
        if (cell.cell.repeat == 0) lives[key] = {cell.begin, 1e300};
        lives[key].first = cell.begin;
      } else {
        lives[key].second = cell.end;
      }
    }
    std::vector<std::pair<double, int>> changes;  // ends sort before begins
    for (const auto& [key, life] : lives) {
      changes.emplace_back(life.first, 1);
      changes.emplace_back(life.second, -1);
    }
    return highest(std::move(changes));
  }

  /// The same where micro-batches are lent to other devices: less those that are away, and with
  /// guests.
  [[nodiscard]] int held(int device) const {
    std::vector<std::pair<double, int>> changes;
    for (const Cell& cell : cells(device)) {
      const bool forward = cell.cell.pass == placement::CellPass::forward;
      changes.emplace_back(forward ? cell.begin : cell.end, forward ? 1 : -1);
    }
    const FlatTasks& tasks = timeline.tasks[timeline.actors[device].sequence];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const program::Block& block = program.blocks[tasks[i].block];
      if (!block.name.starts_with("lend ") && !block.name.starts_with("take back ")) continue;
      const bool sends = !block.tasks.front().reads.empty();
      const ActorTimes& times = timeline.times[device];
      changes.emplace_back(in_units(sends ? times.ends[0][i] : times.begins[0][i]), sends ? -1 : 1);
    }
    return highest(std::move(changes));
  }

  program::Program program;
  Timeline timeline;

 private:
  /// The highest sum of changes in the order of time; at one instant what ends comes first.
  static int highest(std::vector<std::pair<double, int>> changes) {
    std::ranges::sort(changes);
    int now = 0;
    int most = 0;
    for (const auto& [when, change] : changes) most = std::max(most, now += change);
    return most;
  }

  struct Cell {
    placement::Cell cell;
    double begin = 1e300;
    double end = 0;
    double busy = 0;
  };

  static double in_units(Instant when) {
    return static_cast<double>(when.picoseconds) / static_cast<double>(unit);
  }

  /// What a device computes in the first iteration, cell by cell.
  [[nodiscard]] std::vector<Cell> cells(int device) const {
    std::map<placement::Cell, Cell> found;
    const FlatTasks& tasks = timeline.tasks[timeline.actors[device].sequence];
    const program::Sequence& sequence = program.sequences[timeline.actors[device].sequence];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const program::Call& call = sequence.calls[tasks[i].call];
      if (tasks[i].stream != program::Stream::compute) continue;
      if (program.blocks[call.block].name == "step") continue;
      Cell& cell = found[call.cell];
      cell.cell = call.cell;
      const double begin = in_units(timeline.times[device].begins[call.lag][i]);
      const double end = in_units(timeline.times[device].ends[call.lag][i]);
      cell.begin = std::min(cell.begin, begin);
      cell.end = std::max(cell.end, end);
      cell.busy += end - begin;
    }
    std::vector<Cell> result;
    for (const auto& [key, cell] : found) result.push_back(cell);
    return result;
  }
};

}  // namespace stratagem::sim

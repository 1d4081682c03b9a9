// From an outline of a plan's cells to blocks, and from a repetend to op-orders.
#include "search/order/pipeline_cells.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "base/input_error.hpp"
#include "lowering/outline.hpp"
#include "search/device_room.hpp"
#include "sim/price.hpp"
#include "strategies/language/expand.hpp"
#include "study/bounds.hpp"
#include "study/least_times.hpp"
#include "study/plan_of.hpp"

namespace stratagem::search {
namespace {

using lowering::Outline;
using lowering::OutlinedCell;
using placement::Cell;
using placement::CellPass;

/// What a device has for activations, in whole parts.
constexpr std::int64_t parts = 1024;

void refuse_unlike(const strategies::Plan& plan) {
  const auto refuse_if = [](bool is_so, const std::string& what) {
    if (is_so) throw InputError("", "", "a plan whose cells all repeat alike", what);
  };
  refuse_if(plan.copies().most() > 1, "copies of stages");
  refuse_if(plan.slices() > 1, "token slices");
  refuse_if(!plan.updates.flush, "iterations without a flush");
  refuse_if(!plan.orders().together.empty(), "cells that run together");
  refuse_if(plan.residency.keeps_segments() || plan.residency.keeps_cells(),
            "activations that wait elsewhere");
  refuse_if(
      !plan.divided(strategies::Keep::What::checkpoints, strategies::Keep::Between::passes).empty(),
      "checkpoints that are divided");
  for (int stage = 0; stage < plan.extent().stages; ++stage) {
    for (int m = 1; m < plan.micro_batches; ++m)
      refuse_if(plan.splits_backward(stage, m) != plan.splits_backward(stage, 0),
                "backward cells of which some are split");
  }
}

/// Cells take the same time and leave the same behind in any order, so one that always exists will
/// do: one cell after another.
strategies::Plan one_by_one(const strategies::Plan& plan) {
  strategies::Plan result = plan;
  result.forget_orders();
  std::vector<Cell> cells;
  const strategies::Extent extent = plan.extent();
  for (int m = 0; m < extent.micro_batches; ++m) {
    for (int repeat = 0; repeat < extent.repeats; ++repeat) {
      for (int stage = 0; stage < extent.stages; ++stage)
        cells.push_back({.stage = stage, .micro_batch = m, .repeat = repeat});
    }
    for (int stage = extent.stages; stage-- > 0;) {
      cells.push_back({stage, m, CellPass::backward});
      if (plan.splits_backward(stage, m)) cells.push_back({stage, m, CellPass::weight});
    }
  }
  result.chain(std::move(cells));
  return result;
}

/// The cells of micro-batch 0, each as its device classes run it.
using ByCell = std::map<Cell, std::vector<const OutlinedCell*>>;

ByCell first_cells(const Outline& outline) {
  ByCell cells;
  for (const OutlinedCell& one : outline.cells) {
    if (one.cell.micro_batch == 0) cells[one.cell].push_back(&one);
  }
  return cells;
}

/// Cells of the micro-batch that end before this one begins.
std::vector<Cell> before(const Cell& cell, const std::vector<const OutlinedCell*>& classes,
                         const std::map<int, Cell>& by_place, const strategies::Extent& extent) {
  std::set<Cell> result;
  for (const OutlinedCell* one : classes) {
    for (const int place : one->reads) {
      if (const auto read = by_place.find(place); read != by_place.end())
        result.insert(read->second);
    }
  }
  Cell own = cell;
  if (cell.pass == CellPass::weight) own.pass = CellPass::backward;
  if (cell.pass == CellPass::backward) {
    own.pass = CellPass::forward;
    own.repeat = extent.repeats - 1;
  }
  if (cell.pass == CellPass::forward && cell.stage == 0 && cell.repeat > 0)
    own = {.stage = extent.stages - 1, .repeat = cell.repeat - 1};
  if (own != cell) result.insert(own);
  return {result.begin(), result.end()};
}

/// Times in whole units of which the busiest device works so many. The error is that of a device's
/// cells, added up, as a share of the busiest one's work.
struct Rounded {
  double unit = 0;
  std::vector<int> spans;
  double error = 0;
};

Rounded rounded(const std::vector<study::Picoseconds>& times, const std::vector<Block>& blocks,
                std::size_t devices, int units) {
  std::vector<double> work(devices), error(devices);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (const int device : blocks[b].devices) work[device] += static_cast<double>(times[b]);
  }
  Rounded result{.unit = *std::ranges::max_element(work) / units};
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const double exact = static_cast<double>(times[b]) / result.unit;
    result.spans.push_back(std::max(1, static_cast<int>(std::lround(exact))));
    for (const int device : blocks[b].devices)
      error[device] += std::abs(result.spans.back() - exact) / units;
  }
  result.error = *std::ranges::max_element(error);
  return result;
}

/// As few units as leave an error of 5 %, or the least one: the solver's work grows with them.
Rounded well_rounded(const std::vector<study::Picoseconds>& times, const std::vector<Block>& blocks,
                     std::size_t devices) {
  constexpr int most = 24;
  constexpr double good = 0.05;
  std::vector<int> count(devices);
  for (const Block& block : blocks) {
    for (const int device : block.devices) ++count[device];
  }
  const int least = *std::ranges::max_element(count);
  Rounded best = rounded(times, blocks, devices, least);
  for (int units = least + 1; units <= std::max(most, least) && best.error > good; ++units) {
    Rounded other = rounded(times, blocks, devices, units);
    if (other.error < best.error) best = std::move(other);
  }
  return best;
}

/// What each device class has for activations.
std::vector<Bytes> room_of(const study::Run& run, const strategies::Plan& plan,
                           const Outline& outline) {
  std::vector<Bytes> room = device_room(run, study::program_of(run, plan));
  std::vector<Bytes> rises(room.size());
  for (const OutlinedCell& cell : outline.cells) {
    for (const int block : cell.blocks)
      rises[cell.device_class] =
          std::max(rises[cell.device_class], study::rise_of(outline.program.blocks[block]));
  }
  for (std::size_t c = 0; c < room.size(); ++c) {
    room[c] -= outline.at_steps[c] + rises[c];
    if (room[c] <= Bytes{}) {
      throw InputError("", "", "a plan that leaves memory for activations on every device",
                       "none beside parameters, gradients and states");
    }
  }
  return room;
}

void add_held(PipelineCells& result, const ByCell& cells, const std::map<Cell, int>& numbers,
              const std::vector<Bytes>& room) {
  result.problem.limits.assign(room.size(), parts);
  for (const auto& [cell, classes] : cells) {
    Cell last{.stage = cell.stage, .pass = CellPass::weight};
    if (!numbers.contains(last)) last.pass = CellPass::backward;
    for (const OutlinedCell* one : classes) {
      if (one->leaves <= Bytes{} || !numbers.contains(last)) continue;
      const double share = one->leaves / room[one->device_class];
      result.problem.held.push_back(
          {.device = one->device_class,
           .from = numbers.at(cell),
           .to = numbers.at(last),
           .amount = static_cast<std::int64_t>(std::ceil(share * parts))});
    }
  }
}

/// Orders by cells of micro-batch 0 (`before`, `after`) and how many micro-batches later `after`
/// is.
using Lags = std::map<std::tuple<Cell, Cell, int>, int>;

/// How often a rule says each.
Lags lags_of(const strategies::OrderRule& rule, const strategies::Extent& extent) {
  Lags lags;
  for (const placement::Order& order : strategies::expand(rule, extent)) {
    Cell before = order.before, after = order.after;
    const int lag = after.micro_batch - before.micro_batch;
    before.micro_batch = after.micro_batch = 0;
    ++lags[{before, after, lag}];
  }
  return lags;
}

/// Rules of a plan file, which must say the same of all micro-batches, however many there are.
void add_asked(PipelineCells& result, const strategies::Plan& plan,
               const std::map<Cell, int>& numbers) {
  const strategies::CellOrders& orders = plan.orders();
  const std::string expected =
      "op-orders that say the same of all micro-batches, such as F(i, m) "
      "before F(i, m+1)";
  if (!orders.chains.empty() || !orders.pairs.empty())
    throw InputError("", "/primitives", expected, "cells that are listed one by one");
  strategies::Extent many = plan.extent();
  many.micro_batches = std::max(64, 2 * plan.micro_batches);
  std::set<std::tuple<int, int, int>> found;
  for (const strategies::OrderRule& rule : orders.rules) {
    const Lags lags = lags_of(rule, many);
    const auto refuse = [&] {
      throw InputError("", rule.path, expected, rule.before + " before " + rule.after);
    };
    for (const auto& [order, times] : lags) {
      const auto& [before, after, lag] = order;
      if (times != many.micro_batches - std::abs(lag)) refuse();
      if (numbers.contains(before) && numbers.contains(after))
        found.emplace(numbers.at(before), numbers.at(after), lag);
    }
    for (const auto& [order, times] : lags_of(rule, plan.extent())) {
      if (!lags.contains(order)) refuse();
    }
  }
  for (const auto& [one, other, lag] : found) result.problem.asked.push_back({one, other, lag});
}

/// "F2", "B0"; "F1(2)" is the first of several forward passes on stage 2.
std::string name_of(const Cell& cell, const strategies::Extent& extent) {
  const std::string pass = placement::to_text(cell.pass);
  if (extent.repeats == 1 || cell.pass != CellPass::forward)
    return pass + std::to_string(cell.stage);
  return pass + std::to_string(cell.repeat + 1) + "(" + std::to_string(cell.stage) + ")";
}

/// Of each cell the longest of its classes'.
std::vector<study::Picoseconds> times_of(const study::Run& run, const Outline& outline,
                                         const ByCell& cells) {
  const sim::Prices prices =
      sim::price(outline.program, run.profile, run.stack, run.cluster.gpus_per_node());
  study::LeastTimes least(outline.program, prices, run);
  std::vector<study::Picoseconds> times;
  for (const auto& [cell, classes] : cells) {
    study::Picoseconds longest = 0;
    for (const OutlinedCell* one : classes) {
      study::Picoseconds time = 0;
      for (const int id : one->blocks) time += least.span(id, one->device_class);
      longest = std::max(longest, time);
    }
    times.push_back(longest);
  }
  return times;
}

/// Without their spans.
std::vector<Block> blocks_of(const ByCell& cells, const std::map<Cell, int>& numbers,
                             const strategies::Extent& extent) {
  std::map<int, Cell> by_place;
  for (const auto& [cell, classes] : cells) by_place.emplace(classes.front()->place, cell);
  std::vector<Block> blocks;
  for (const auto& [cell, classes] : cells) {
    Block block{.name = name_of(cell, extent)};
    for (const OutlinedCell* one : classes) block.devices.push_back(one->device_class);
    for (const Cell& earlier : before(cell, classes, by_place, extent))
      block.after.push_back(numbers.at(earlier));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace

PipelineCells cells_of(const study::Run& run, const strategies::Plan& plan) {
  refuse_unlike(plan);
  const strategies::Plan any = one_by_one(plan);
  const Outline outline = lowering::outline(any, run.stack, run.training);
  const ByCell cells = first_cells(outline);
  PipelineCells result;
  std::map<Cell, int> numbers;
  for (const auto& [cell, classes] : cells) {
    numbers.emplace(cell, static_cast<int>(numbers.size()));
    result.kinds.push_back(cell);
  }
  const std::vector<study::Picoseconds> times = times_of(run, outline, cells);
  result.problem.blocks = blocks_of(cells, numbers, plan.extent());
  const Rounded whole = well_rounded(times, result.problem.blocks, outline.always.size());
  for (std::size_t b = 0; b < times.size(); ++b) result.problem.blocks[b].span = whole.spans[b];
  result.unit = Seconds{whole.unit * 1e-12};
  result.rounding = whole.error;
  add_held(result, cells, numbers, room_of(run, any, outline));
  if (run.plan) add_asked(result, plan, numbers);
  return result;
}

strategies::Plan with_order(const strategies::Plan& plan, const PipelineCells& cells,
                            const Repetend& repetend) {
  strategies::Plan result = plan;
  result.forget_orders();
  for (const auto& device : unrolled(cells.problem, repetend, plan.micro_batches)) {
    std::vector<Cell> chain;
    for (const OrderedBlock& one : device) {
      chain.push_back(cells.kinds[one.block]);
      chain.back().micro_batch = one.micro_batch;
    }
    result.chain(std::move(chain));
  }
  return result;
}

}  // namespace stratagem::search

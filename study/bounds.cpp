// Adds up prices of computations and sizes of buffers along the cells of a plan's outline.
#include "study/bounds.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "lowering/outline.hpp"
#include "sim/price.hpp"
#include "study/plan_of.hpp"

namespace stratagem::study {
namespace {

using lowering::Outline;
using lowering::OutlinedCell;

/// What computations of a block take, one after another, and how far they raise memory, in buffers
/// of their own.
struct BlockBound {
  Seconds time;
  Bytes rise;
};

Bytes rise_of(const program::Block& block) {
  std::vector<bool> own(block.slots.size(), false);
  Bytes live, highest;
  for (const program::Task& task : block.tasks) {
    if (task.stream != program::Stream::compute) continue;
    for (const int slot : task.allocates) {
      own[slot] = block.slots[slot].place == program::Residence::device;
      if (own[slot]) live += block.slots[slot].bytes;
    }
    highest = std::max(highest, live);
    for (const int slot : task.frees) {
      if (own[slot]) live -= block.slots[slot].bytes;
    }
  }
  return highest;
}

std::vector<BlockBound> bounds_of_blocks(const program::Program& program,
                                         const sim::Prices& prices) {
  std::vector<BlockBound> bounds;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    BlockBound& bound = bounds.emplace_back();
    std::int64_t ticks = 0;
    const std::vector<program::Task>& tasks = program.blocks[b].tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const bool computes = std::holds_alternative<cost::Kernel>(tasks[t].work);
      if (computes && tasks[t].stream == program::Stream::compute)
        ticks += prices[b][t].device.count;
    }
    bound.time = Seconds{static_cast<double>(ticks) * 1e-12};
    bound.rise = rise_of(program.blocks[b]);
  }
  return bounds;
}

Bytes highest_memory(const Outline& outline, const std::vector<BlockBound>& blocks) {
  std::vector<Bytes> held(outline.always.size()), highest(outline.always.size());
  for (const OutlinedCell& cell : outline.cells) {
    Bytes& now = held[cell.device_class];
    Bytes& most = highest[cell.device_class];
    now -= cell.releases;  // at some time while the cell runs, so perhaps at once
    for (const int block : cell.blocks) most = std::max(most, now + blocks[block].rise);
    now += cell.leaves;
    most = std::max(most, now);
  }
  Bytes result;
  for (std::size_t i = 0; i < highest.size(); ++i)
    result = std::max({result, outline.always[i] + highest[i], outline.at_steps[i]});
  return result;
}

Seconds time_of(const OutlinedCell& cell, const std::vector<BlockBound>& blocks) {
  Seconds time;
  for (const int block : cell.blocks) time += blocks[block].time;
  return time;
}

constexpr Seconds not_reached{-std::numeric_limits<double>::infinity()};

/// The longest way from the first cell of a device class to its first cell of the next iteration.
Seconds longest_round(const Outline& outline, const std::vector<Seconds>& times, int from) {
  const std::vector<OutlinedCell>& cells = outline.cells;
  std::vector<Seconds> last(outline.always.size(), not_reached);  // by device class: its last end
  std::vector<Seconds> ends(cells.back().place + 1);  // by place: the soonest of its classes
  bool begun = false;
  for (int iteration = 0; iteration < 2; ++iteration) {
    std::ranges::fill(ends, not_reached);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const OutlinedCell& cell = cells[i];
      Seconds& now = last[cell.device_class];
      for (const int place : cell.after) now = std::max(now, ends[place]);
      if (cell.device_class == from && !begun) now = Seconds{};
      if (cell.device_class == from && iteration == 1) return now;
      begun = begun || cell.device_class == from;
      now += times[i];
      const bool first = i == 0 || cells[i - 1].place != cell.place;
      ends[cell.place] = first ? now : std::min(ends[cell.place], now);
    }
  }
  return {};
}

Seconds shortest_iteration(const Outline& outline, const std::vector<BlockBound>& blocks) {
  std::vector<Seconds> times, busy(outline.always.size());
  for (const OutlinedCell& cell : outline.cells) {
    times.push_back(time_of(cell, blocks));
    busy[cell.device_class] += times.back();
  }
  if (busy.empty() || outline.cells.empty()) return {};
  const auto busiest = static_cast<int>(std::ranges::max_element(busy) - busy.begin());
  if (outline.program.lag > 0) return busy[busiest];
  return std::max(longest_round(outline, times, busiest),
                  longest_round(outline, times, outline.cells.front().device_class));
}

}  // namespace

Bounds bounds(const Run& run) {
  const strategies::Plan plan = plan_of(run);
  const Outline outline = lowering::outline(plan, run.stack, run.training);
  const sim::Prices prices =
      sim::price(outline.program, run.profile, run.stack, run.cluster.gpus_per_node());
  const std::vector<BlockBound> blocks = bounds_of_blocks(outline.program, prices);
  return {.iteration_time = shortest_iteration(outline, blocks),
          .memory = highest_memory(outline, blocks) + run.profile.memory.context.value};
}

}  // namespace stratagem::study

// Adds up prices of computations and sizes of buffers along the cells of a plan's outline.
#include "study/bounds.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "cost/collectives.hpp"
#include "lowering/outline.hpp"
#include "sim/price.hpp"
#include "study/plan_of.hpp"

namespace stratagem::study {
namespace {

using lowering::Outline;
using lowering::OutlinedCell;

constexpr Seconds not_reached{-std::numeric_limits<double>::infinity()};

/// How far the computations of a block raise memory, in buffers of their own.
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

Seconds seconds(sim::Ticks ticks) { return {static_cast<double>(ticks.count) * 1e-12}; }

/// The least times of tasks and blocks on a device.
class BlockTimes {
 public:
  BlockTimes(const program::Program& program, const sim::Prices& prices, const Run& run)
      : program_(program),
        prices_(prices),
        collectives_(run.cluster, run.profile.collective, run.stack.nccl) {}

  /// From the start of a block's first computation to the end of its last one.
  Seconds span(int block, int device) {
    const auto [known, added] = known_.try_emplace({block, device});
    if (added) known->second = found(block, program_.devices[device]);
    return known->second;
  }

  /// Of a task of a block; of a collective as if it had all links to itself and all ranks came at
  /// once.
  [[nodiscard]] Seconds time(int block, std::size_t task, const program::Device& device) {
    const auto& work = program_.blocks[block].tasks[task].work;
    const auto* collective = std::get_if<program::Collective>(&work);
    if (collective == nullptr) return seconds(prices_[block][task].device);
    if (!program::crosses_links(program_, device, *collective)) return {};
    const int group = device.groups[collective->group];
    const std::vector<int>& ranks = program_.communicators[group].ranks;
    const cost::Route route = collectives_.route(collective->kind, ranks, collective->payload);
    return collectives_.alone(route, collective->payload);
  }

 private:
  /// Computations begin when the block does, at the earliest; what runs on another stream and waits
  /// for none of them may have ended by then.
  [[nodiscard]] Seconds found(int block, const program::Device& device) {
    const std::vector<program::Task>& tasks = program_.blocks[block].tasks;
    std::vector<Seconds> ends;
    std::map<program::Stream, Seconds> last = {{program::Stream::compute, Seconds{}}};
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      Seconds& free = last.try_emplace(tasks[t].stream, not_reached).first->second;
      for (const int earlier : tasks[t].waits) free = std::max(free, ends[earlier]);
      free += time(block, t, device);
      ends.push_back(free);
    }
    return last.at(program::Stream::compute);
  }

  const program::Program& program_;
  const sim::Prices& prices_;
  cost::Collectives collectives_;
  std::map<std::pair<int, int>, Seconds> known_;  ///< by block and device
};

Bytes highest_memory(const Outline& outline) {
  std::vector<Bytes> rises;
  for (const program::Block& block : outline.program.blocks) rises.push_back(rise_of(block));
  std::vector<Bytes> held(outline.always.size()), highest(outline.always.size());
  for (const OutlinedCell& cell : outline.cells) {
    Bytes& now = held[cell.device_class];
    Bytes& most = highest[cell.device_class];
    now -= cell.releases;  // at some time while the cell runs, so perhaps at once
    for (const int block : cell.blocks) most = std::max(most, now + rises[block]);
    now += cell.leaves;
    most = std::max(most, now);
  }
  Bytes result;
  for (std::size_t i = 0; i < highest.size(); ++i)
    result = std::max({result, outline.always[i] + highest[i], outline.at_steps[i]});
  return result;
}

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

/// The first device of every class.
std::vector<int> first_devices(const program::Program& program, std::size_t classes) {
  std::vector<int> first(classes, -1);
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    int& device = first[program.devices[d].sequence];
    if (device < 0) device = static_cast<int>(d);
  }
  return first;
}

Seconds shortest_iteration(const Outline& outline, const sim::Prices& prices, const Run& run) {
  const std::size_t classes = outline.always.size();
  const std::vector<int> devices = first_devices(outline.program, classes);
  BlockTimes times_of(outline.program, prices, run);
  std::vector<Seconds> times, busy(classes);
  for (const OutlinedCell& cell : outline.cells) {
    Seconds time;
    for (const int block : cell.blocks) time += times_of.span(block, devices[cell.device_class]);
    times.push_back(time);
    busy[cell.device_class] += time;
  }
  if (outline.cells.empty()) return {};
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
  return {.iteration_time = shortest_iteration(outline, prices, run),
          .memory = highest_memory(outline) + run.profile.memory.context.value};
}

Seconds busiest_queue(const Run& run, const program::Program& program, const sim::Prices& prices) {
  BlockTimes times(program, prices, run);
  const std::vector<int> devices = first_devices(program, program.sequences.size());
  Seconds busiest;
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    std::map<int, int> count;  // of calls, by block
    const program::Calls& calls = program.sequences[s].calls;
    for (std::size_t call = 0; call < calls.size(); ++call) ++count[calls.body(call).block];
    std::map<program::Stream, Seconds> busy;
    for (const auto& [block, times_called] : count) {
      const std::vector<program::Task>& tasks = program.blocks[block].tasks;
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        if (program::transfers(tasks[t].stream)) continue;  // a queue for each group
        busy[tasks[t].stream] += times_called * times.time(block, t, program.devices[devices[s]]);
      }
    }
    for (const auto& [stream, time] : busy) busiest = std::max(busiest, time);
  }
  return busiest;
}

}  // namespace stratagem::study

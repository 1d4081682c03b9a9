// Adds up prices of computations and sizes of buffers along the cells of a plan's outline.
#include "study/bounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
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

/// Whole picoseconds, so that sums are those of a simulation.
using Picoseconds = std::int64_t;
constexpr Picoseconds never_reached = std::numeric_limits<Picoseconds>::min() / 4;

/// How far the computations of a block raise memory by buffers that others of them free. What
/// stays behind is in OutlinedCell::leaves.
Bytes rise_of(const program::Block& block) {
  const auto computes = [](const program::Task& task) {
    return task.stream == program::Stream::compute;
  };
  std::set<int> allocated, counted;
  for (const program::Task& task : block.tasks) {
    if (!computes(task)) continue;
    allocated.insert(task.allocates.begin(), task.allocates.end());
    for (const int slot : task.frees) {
      if (allocated.contains(slot) && block.slots[slot].place == program::Residence::device)
        counted.insert(slot);
    }
  }
  const auto sum = [&](const std::vector<int>& slots) {
    Bytes bytes;
    for (const int slot : slots)
      bytes += counted.contains(slot) ? block.slots[slot].bytes : Bytes{};
    return bytes;
  };
  Bytes live, highest;
  for (const program::Task& task : block.tasks) {
    if (!computes(task)) continue;
    live += sum(task.allocates);
    highest = std::max(highest, live);
    live -= sum(task.frees);
  }
  return highest;
}

/// The least times of tasks and blocks on the devices of a class.
class LeastTimes {
 public:
  LeastTimes(const program::Program& program, const sim::Prices& prices, const Run& run)
      : program_(program),
        prices_(prices),
        collectives_(run.cluster, run.profile.collective, run.stack.nccl) {
    for (std::size_t d = 0; d < program.devices.size(); ++d)
      devices_[program.devices[d].sequence].push_back(static_cast<int>(d));
  }

  /// Of a task; of a collective as if it had all links to itself and all ranks came at once.
  Picoseconds of_task(int block, int task, int device_class) {
    const auto& work = program_.blocks[block].tasks[task].work;
    const auto* collective = std::get_if<program::Collective>(&work);
    if (collective == nullptr) return prices_[block][task].device.count;
    const auto [known, added] = collective_times_.try_emplace({block, task, device_class});
    if (added) known->second = least(*collective, device_class);
    return known->second;
  }

  /// When each task of a block ends, if its computations begin at 0; or if task `from` does, and
  /// nothing else holds up any other: then only what follows from it is reached. Last, the end of
  /// all computations.
  const std::vector<Picoseconds>& ends(int block, int device_class, int from = -1) {
    const auto [known, added] = ends_.try_emplace({block, device_class, from});
    if (added) known->second = found(block, device_class, from);
    return known->second;
  }

  Picoseconds span(int block, int device_class) { return ends(block, device_class).back(); }

  /// Of kernels alone, which share one queue.
  Picoseconds computing(int block) {
    const std::vector<program::Task>& tasks = program_.blocks[block].tasks;
    Picoseconds sum = 0;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const bool computes = std::holds_alternative<cost::Kernel>(tasks[t].work);
      if (computes && tasks[t].stream == program::Stream::compute)
        sum += prices_[block][t].device.count;
    }
    return sum;
  }

 private:
  [[nodiscard]] std::vector<Picoseconds> found(int block, int device_class, int from) {
    const std::vector<program::Task>& tasks = program_.blocks[block].tasks;
    std::map<program::Stream, Picoseconds> queues;
    queues[program::Stream::compute] = from < 0 ? 0 : never_reached;
    std::vector<Picoseconds> result;
    for (int t = 0; t < static_cast<int>(tasks.size()); ++t) {
      Picoseconds& free = queues.try_emplace(tasks[t].stream, never_reached).first->second;
      for (const int earlier : tasks[t].waits) free = std::max(free, result[earlier]);
      if (t == from) free = std::max<Picoseconds>(free, 0);
      if (free >= 0) free += of_task(block, t, device_class);
      result.push_back(free);
    }
    result.push_back(queues.at(program::Stream::compute));
    return result;
  }

  /// On whichever devices of the class it takes the least.
  [[nodiscard]] Picoseconds least(const program::Collective& collective, int device_class) {
    constexpr Picoseconds rounding = 2;
    std::set<int> groups;
    for (const int d : devices_.at(device_class)) {
      const program::Device& device = program_.devices[d];
      if (!program::crosses_links(program_, device, collective)) return 0;
      groups.insert(device.groups[collective.group]);
    }
    Picoseconds shortest = std::numeric_limits<Picoseconds>::max();
    for (const int group : groups) {
      const cost::Route route = collectives_.route(
          collective.kind, program_.communicators[group].ranks, collective.payload);
      const double alone = std::floor(collectives_.alone(route, collective.payload).value * 1e12);
      shortest = std::min(shortest, static_cast<Picoseconds>(alone) - rounding);
    }
    return std::max<Picoseconds>(shortest, 0);
  }

  using Key = std::array<int, 3>;
  const program::Program& program_;
  const sim::Prices& prices_;
  cost::Collectives collectives_;
  std::map<int, std::vector<int>> devices_;       ///< by class
  std::map<Key, Picoseconds> collective_times_;   ///< by block, task and class
  std::map<Key, std::vector<Picoseconds>> ends_;  ///< by block, class and the task that begins
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

/// The least times of a cell: from its start to its end, and to the first of its results; and both
/// from when something comes to it that it reads.
struct CellTimes {
  Picoseconds whole = 0;
  Picoseconds to_result = never_reached;
  Picoseconds from_input = never_reached;
  Picoseconds input_to_result = never_reached;
};

/// Cells that run together hide each other's collectives, and nothing is said of their results.
CellTimes times_of_pair(const OutlinedCell& cell, LeastTimes& times) {
  CellTimes result;
  for (const int block : cell.blocks) result.whole += times.computing(block);
  return result;
}

CellTimes times_of(const OutlinedCell& cell, LeastTimes& times) {
  if (cell.pair) return times_of_pair(cell, times);
  const int on = cell.device_class;
  std::vector<Picoseconds> before = {0};  // the spans of all blocks before one
  for (const int block : cell.blocks) before.push_back(before.back() + times.span(block, on));
  const auto end_of = [&](const OutlinedCell::At& writer) {
    return before[writer.block] + times.ends(cell.blocks[writer.block], on)[writer.task];
  };
  // From a reader to the end of a later task; only what surely follows.
  const auto way = [&](const OutlinedCell::At& reader, const OutlinedCell::At* writer) {
    const auto& ends = times.ends(cell.blocks[reader.block], on, reader.task);
    if (writer != nullptr && writer->block < reader.block) return never_reached;
    if (writer != nullptr && writer->block == reader.block) return ends[writer->task];
    if (ends.back() < 0) return never_reached;
    const Picoseconds later = writer == nullptr ? before.back() : end_of(*writer);
    return ends.back() + later - before[reader.block + 1];
  };
  CellTimes result{.whole = before.back()};
  constexpr Picoseconds none = std::numeric_limits<Picoseconds>::max();
  Picoseconds to_result = none, from_input = none, through = none;
  for (const OutlinedCell::At& writer : cell.writers)
    to_result = std::min(to_result, end_of(writer));
  for (const OutlinedCell::At& reader : cell.readers) {
    from_input = std::min(from_input, way(reader, nullptr));
    for (const OutlinedCell::At& writer : cell.writers)
      through = std::min(through, way(reader, &writer));
  }
  if (from_input != none) result.from_input = from_input;
  if (cell.passes_on) return result;
  if (to_result != none) result.to_result = to_result;
  if (through != none) result.input_to_result = through;
  return result;
}

/// `time` after an instant; never if either is not reached.
Picoseconds later(Picoseconds instant, Picoseconds time) {
  return instant < 0 || time < 0 ? never_reached : instant + time;
}

/// The longest way from the first cell of a device class to its first cell of the next iteration.
Picoseconds longest_round(const Outline& outline, const std::vector<CellTimes>& times, int from) {
  const std::vector<OutlinedCell>& cells = outline.cells;
  std::vector<Picoseconds> last(outline.always.size(), never_reached);  // by device class
  std::vector<Picoseconds> results(cells.back().place + 1);  // by place: the soonest of its classes
  bool begun = false;
  for (int iteration = 0; iteration < 2; ++iteration) {
    std::ranges::fill(results, never_reached);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const OutlinedCell& cell = cells[i];
      Picoseconds& now = last[cell.device_class];
      if (cell.device_class == from && iteration == 1) return now;
      if (cell.device_class == from && !begun) now = 0;
      begun = begun || cell.device_class == from;
      Picoseconds input = never_reached;
      for (const int place : cell.reads) input = std::max(input, results[place]);
      const Picoseconds result =
          std::max(later(now, times[i].to_result), later(input, times[i].input_to_result));
      now = std::max(later(now, times[i].whole), later(input, times[i].from_input));
      const bool first = i == 0 || cells[i - 1].place != cell.place;
      results[cell.place] = first ? result : std::min(results[cell.place], result);
    }
  }
  return 0;
}

Seconds shortest_iteration(const Outline& outline, const sim::Prices& prices, const Run& run) {
  if (outline.cells.empty() || outline.program.lag > 0) return {};
  LeastTimes least(outline.program, prices, run);
  using Alike = std::tuple<int, bool, bool, std::vector<int>, std::vector<OutlinedCell::At>,
                           std::vector<OutlinedCell::At>>;
  std::map<Alike, CellTimes> known;
  std::vector<CellTimes> times;
  std::vector<Picoseconds> busy(outline.always.size());
  for (const OutlinedCell& cell : outline.cells) {
    const auto [same, added] = known.try_emplace(
        {cell.device_class, cell.pair, cell.passes_on, cell.blocks, cell.readers, cell.writers});
    if (added) same->second = times_of(cell, least);
    times.push_back(same->second);
    busy[cell.device_class] += times.back().whole;
  }
  const auto busiest = static_cast<int>(std::ranges::max_element(busy) - busy.begin());
  const Picoseconds longest =
      std::max(longest_round(outline, times, busiest),
               longest_round(outline, times, outline.cells.front().device_class));
  return sim::to_seconds(sim::Ticks{longest});
}

/// How often a sequence calls each block in an iteration.
std::map<int, int> calls_of(const program::Sequence& sequence) {
  std::map<int, int> count;
  const std::vector<program::StoredCall>& stored = sequence.calls.stored();
  for (std::size_t c = 0; c < stored.size(); ++c) {
    const program::Loop* loop = sequence.calls.loop_of(static_cast<int>(c));
    count[stored[c].block] += loop != nullptr ? loop->turns : 1;
  }
  return count;
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
  if (program.lag > 0) return {};
  LeastTimes times(program, prices, run);
  Picoseconds busiest = 0;
  for (int s = 0; s < static_cast<int>(program.sequences.size()); ++s) {
    std::map<program::Stream, Picoseconds> busy;
    for (const auto& [block, times_called] : calls_of(program.sequences[s])) {
      const std::vector<program::Task>& tasks = program.blocks[block].tasks;
      for (int t = 0; t < static_cast<int>(tasks.size()); ++t) {
        if (program::transfers(tasks[t].stream)) continue;  // a queue for each group
        busy[tasks[t].stream] += times_called * times.of_task(block, t, s);
      }
    }
    for (const auto& [stream, time] : busy) busiest = std::max(busiest, time);
  }
  return sim::to_seconds(sim::Ticks{busiest});
}

}  // namespace stratagem::study

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

#include "lowering/outline.hpp"
#include "sim/price.hpp"
#include "study/least_times.hpp"
#include "study/plan_of.hpp"

namespace stratagem::study {
namespace {

using lowering::Outline;
using lowering::OutlinedCell;

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

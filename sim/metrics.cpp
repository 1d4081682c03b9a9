// Sweeps over tasks of the measured period, and over allocations and frees of the first iteration.
#include "sim/metrics.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/sort_mixed.hpp"

namespace stratagem::sim {
namespace {

using program::Program;

const program::Task& task_of(const Program& program, const FlatTask& flat) {
  return program.blocks[flat.block].tasks[flat.task];
}

ByCategory residents_of(const Program& program, const Timeline& timeline, std::size_t actor) {
  return residents(program, timeline.actors[actor].sequence, program::Residence::device);
}

using Interval = std::pair<std::int64_t, std::int64_t>;

/// Total length of a union of intervals.
std::int64_t covered(std::vector<Interval>& intervals) {
  sort_mixed(intervals);
  std::int64_t total = 0;
  std::int64_t reached = std::numeric_limits<std::int64_t>::min();
  for (const auto& [begin, end] : intervals) {
    total += std::max<std::int64_t>(0, end - std::max(begin, reached));
    reached = std::max(reached, end);
  }
  return total;
}

/// How long an actor computed, and how long it computed or communicated, between two instants.
struct Busy {
  std::int64_t computing = 0;
  std::int64_t anything = 0;
};

/// What a task does to its device.
enum class Doing : std::uint8_t { computing, communicating, nothing };

Doing doing(const program::Task& task) {
  if (const auto* one = std::get_if<program::Collective>(&task.work))
    return cost::concerns_drives(one->kind) ? Doing::nothing : Doing::communicating;
  return task.stream == program::Stream::host ? Doing::nothing : Doing::computing;
}

Busy busy_between(const Program& program, const Timeline& timeline, std::size_t actor, Instant from,
                  Instant to) {
  std::vector<Interval> compute;
  std::vector<Interval> all;
  const FlatTasks& tasks = timeline.tasks[timeline.actors[actor].sequence];
  const ActorTimes& times = timeline.times[actor];
  for (std::size_t round = 0; round < times.begins.size(); ++round) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::int64_t begin = std::max(times.begins[round][i], from).picoseconds;
      const std::int64_t end = std::min(times.ends[round][i], to).picoseconds;
      if (begin >= end) continue;
      const Doing what = doing(task_of(program, tasks.body(i)));
      if (what == Doing::nothing) continue;
      all.emplace_back(begin, end);
      if (what == Doing::computing) compute.emplace_back(begin, end);
    }
  }
  return {covered(compute), covered(all)};
}

/// The same of an iteration, from the end of the one before.
Busy busy_in(const Program& program, const Timeline& timeline, std::size_t actor,
             std::size_t iteration) {
  const std::vector<Instant>& ends = timeline.iteration_ends;
  Busy busy = busy_between(program, timeline, actor, timeline.own(ends[iteration - 1]),
                           timeline.own(ends[iteration]));
  if (timeline.left_out.empty()) return busy;
  const LeftOut& repeated = timeline.left_out[iteration];
  const Busy once = busy_between(program, timeline, actor, repeated.from, repeated.to);
  busy.computing += repeated.periods * once.computing;
  busy.anything += repeated.periods * once.anything;
  return busy;
}

void measure_overlap(Metrics& result, const Program& program, const Timeline& timeline) {
  const std::size_t number = timeline.measured_iteration();
  const auto period = static_cast<double>(timeline.measured_period().count);
  double devices = 0;
  double idle = 0;
  double exposed = 0;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    const Busy busy = busy_in(program, timeline, a, number);
    const double weight = timeline.actors[a].multiplicity;
    devices += weight;
    idle += weight * (period - static_cast<double>(busy.anything));
    exposed += weight * static_cast<double>(busy.anything - busy.computing);
  }
  result.bubble_fraction = idle / (devices * period);
  result.exposed_communication = Seconds{exposed / devices * 1e-12};
}

void count_communication(Metrics& result, const Program& program, const program::Device& device,
                         const program::Task& task, double times) {
  const auto* collective = std::get_if<program::Collective>(&task.work);
  const bool received = task.stream == program::Stream::receive_forward ||
                        task.stream == program::Stream::receive_backward;
  if (collective == nullptr || received) return;  // what is received was counted when sent
  if (!program::crosses_links(program, device, *collective)) return;
  result.communication[cost::to_text(collective->kind)] += times * collective->payload;
}

void count_communication(Metrics& result, const Program& program, const Timeline& timeline) {
  double devices = 0;
  for (const Actor& actor : timeline.actors) devices += actor.multiplicity;
  for (const Actor& actor : timeline.actors) {
    const program::Calls& calls = program.sequences[actor.sequence].calls;
    for (std::size_t c = 0; c < calls.stored().size(); ++c) {
      const program::Loop* loop = calls.loop_of(static_cast<int>(c));
      const double times = static_cast<double>(actor.multiplicity) * (loop ? loop->turns : 1);
      for (const program::Task& task : program.blocks[calls.stored()[c].block].tasks)
        count_communication(result, program, program.devices[actor.device], task, times);
    }
  }
  // Whole bytes until here: no sum depends on how devices are folded.
  for (auto& [kind, bytes] : result.communication) bytes = bytes / devices;
}

/// Of changes by their places, in the order of time.
MemoryPeak highest_of(ByCategory live, const std::vector<MemoryChange>& changes,
                      const std::vector<int>& places) {
  MemoryPeak peak;
  const auto look = [&](Instant when, int task) {
    const Bytes total = sum(live);
    if (total > peak.total) {
      peak.total = total;
      peak.by_category = live;
      peak.when = when;
      peak.task = task;
    }
    for (std::size_t c = 0; c < live.size(); ++c)
      peak.highest[c] = std::max(peak.highest[c], live[c]);
  };
  look(Instant{0}, -1);
  for (const int i : places) {
    const MemoryChange& change = changes[i];
    live[static_cast<std::size_t>(change.category)] += change.bytes;
    look(change.when, change.task);
  }
  return peak;
}

}  // namespace

Bytes sum(const ByCategory& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes{}); }

ByCategory residents(const Program& program, int sequence, program::Residence place) {
  ByCategory live{};
  for (const program::Resident& resident : program.sequences[sequence].residents) {
    if (resident.span || resident.place != place) continue;
    live[static_cast<std::size_t>(resident.category)] += resident.bytes;
  }
  return live;
}

MemoryPeak highest_of(ByCategory live, const std::vector<MemoryChange>& changes) {
  std::vector<int> places(changes.size());
  std::iota(places.begin(), places.end(), 0);
  return highest_of(live, changes, places);
}

std::vector<MemoryStep> memory_steps(const Program& program, const Timeline& timeline,
                                     std::size_t actor, std::optional<int> rounds) {
  ByCategory live = residents_of(program, timeline, actor);
  std::vector<MemoryStep> steps = {{Instant{0}, live}};
  constexpr auto on_device = program::Residence::device;
  for (const MemoryChange& change : memory_changes(program, timeline, actor, on_device, rounds)) {
    live[static_cast<std::size_t>(change.category)] += change.bytes;
    steps.push_back({change.when, live});
  }
  return steps;
}

MemoryPeak memory_peak(const Program& program, const Timeline& timeline, std::size_t actor) {
  return memory_peak(program, timeline, actor, changes_by_task(program, timeline, actor));
}

MemoryPeak memory_peak(const Program& program, const Timeline& timeline, std::size_t actor,
                       const std::vector<MemoryChange>& by_task) {
  return highest_of(residents_of(program, timeline, actor), by_task, order_of_time(by_task));
}

Metrics metrics(const Program& program, const Timeline& timeline) {
  std::vector<MemoryPeak> peaks;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a)
    peaks.push_back(memory_peak(program, timeline, a));
  return metrics(program, timeline, peaks);
}

Metrics metrics(const Program& program, const Timeline& timeline,
                const std::vector<MemoryPeak>& peaks) {
  Metrics result;
  result.iteration_time = to_seconds(timeline.measured_period());
  result.makespan = to_seconds(timeline.iteration_ends.front() - Instant{0});
  result.hardware_flops = program::hardware_flops(program);
  result.steady = timeline.steady;
  measure_overlap(result, program, timeline);
  count_communication(result, program, timeline);
  for (const MemoryPeak& peak : peaks) {
    if (peak.total > result.peak.total) result.peak = peak;
  }
  return result;
}

}  // namespace stratagem::sim

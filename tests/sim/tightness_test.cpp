// A second, naive reading of what the engine promises: no task begins a picosecond later than
// something holds it.
#include <limits>
#include <map>
#include <set>

#include "sim/engine.hpp"
#include "tests/catch.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

namespace {

using program::Stream;

/// A task that the host has launched.
struct Earlier {
  Stream stream;
  int launches;
  Instant end;
};

/// When the host, which comes to a task at `now`, launches it on a stream: once the kernels there
/// that have not ended, with those of the task, are at most `queue`, or there are none.
Instant with_room(const std::vector<Earlier>& earlier, Instant now, Stream stream, int launches,
                  int queue) {
  while (launches > 0) {
    int pending = 0;
    Instant first{std::numeric_limits<std::int64_t>::max()};
    for (const Earlier& one : earlier) {
      if (one.stream != stream || one.launches == 0 || one.end <= now) continue;
      pending += one.launches;
      first = std::min(first, one.end);
    }
    if (pending == 0 || pending + launches <= queue) break;
    now = first;
  }
  return now;
}

/// When something last held each task of an actor: its launch, the task before it on its stream, or
/// what it waits for. Reads programs and prices, not the engine's own tables. Programs launch call
/// after call.
std::vector<std::vector<Instant>> ready_times(const program::Program& program, const Prices& prices,
                                              const Timeline& timeline, std::size_t actor,
                                              std::vector<std::vector<Instant>>& launched,
                                              int queue) {
  const program::Sequence& sequence = program.sequences[timeline.actors[actor].sequence];
  std::vector<std::vector<Instant>> result;
  std::map<Stream, Instant> tail;
  std::vector<Earlier> earlier;
  Instant host{0};
  for (std::size_t i = 0; i < timeline.iteration_ends.size(); ++i) {
    const std::vector<Instant>& ends = timeline.times[actor].ends[i];
    std::vector<std::size_t> first;
    std::size_t flat = 0;
    result.emplace_back();
    launched.emplace_back();
    for (const program::Call& call : sequence.calls) {
      const program::Block& block = program.blocks[call.block];
      first.push_back(flat);
      for (std::size_t t = 0; t < block.tasks.size(); ++t, ++flat) {
        const program::Task& task = block.tasks[t];
        const Price& price = prices[call.block][t];
        for (const program::HostWait& wait : call.host_waits) {
          if (wait.before >= 0 && wait.before != static_cast<int>(t)) continue;
          if (wait.of_call >= 0) host = std::max(host, ends[first[wait.of_call] + wait.of_task]);
          for (const Earlier& one : earlier) {
            const bool meant = wait.of_task < 0 ? one.stream <= Stream::copy_in
                                                : static_cast<int>(one.stream) == wait.of_task;
            if (wait.of_call < 0 && meant) host = std::max(host, one.end);
          }
        }
        const auto* kernel = std::get_if<cost::Kernel>(&task.work);
        const int launches = kernel == nullptr ? 0 : kernel->launches;
        host = with_room(earlier, host, task.stream, launches, queue);
        earlier.push_back({task.stream, launches, ends[flat]});
        Instant ready = std::max(host + price.first_launch, tail[task.stream]);
        for (const int wait : task.waits) ready = std::max(ready, ends[first.back() + wait]);
        for (const program::Wait& wait : call.waits) {
          if (wait.task != static_cast<int>(t)) continue;
          ready = std::max(ready, ends[first[wait.of_call] + wait.of_task]);
        }
        result.back().push_back(ready);
        tail[task.stream] = ends[flat];
        host = host + price.host;
        launched.back().push_back(host + price.last_kernel);
        if (task.synchronizations > 0) host = std::max(host, ends[flat]);
      }
    }
  }
  return result;
}

/// Every rank's k-th collective of each communicator: by (communicator, k), the ranks' (actor,
/// iteration, task).
struct Place {
  std::size_t actor, iteration, task;
};
std::map<std::pair<int, int>, std::vector<Place>> collective_instances(
    const program::Program& program, const Timeline& timeline) {
  std::map<std::pair<int, int>, std::vector<Place>> result;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    const Actor& actor = timeline.actors[a];
    std::map<int, int> posted;
    for (std::size_t i = 0; i < timeline.iteration_ends.size(); ++i) {
      const FlatTasks& tasks = timeline.tasks[actor.sequence];
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const auto& work = program.blocks[tasks[t].block].tasks[tasks[t].task].work;
        const auto* collective = std::get_if<program::Collective>(&work);
        if (collective == nullptr) continue;
        const int communicator = program.devices[actor.device].groups[collective->group];
        result[{communicator, posted[communicator]++}].push_back({a, i, t});
      }
    }
  }
  return result;
}

/// Checks an unfolded timeline; returns how many tasks it looked at.
std::size_t check_tight(const program::Program& program, const Prices& prices,
                        const Timeline& timeline, int queue) {
  std::vector<std::vector<std::vector<Instant>>> ready;
  std::vector<std::vector<std::vector<Instant>>> launched(timeline.actors.size());
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    ready.push_back(ready_times(program, prices, timeline, a, launched[a], queue));
  }
  // A collective is ready when the last of its ranks is.
  for (const auto& [key, places] : collective_instances(program, timeline)) {
    Instant last{0};
    for (const Place& p : places) last = std::max(last, ready[p.actor][p.iteration][p.task]);
    std::set<Instant> ends;
    for (const Place& p : places) {
      ready[p.actor][p.iteration][p.task] = last;
      ends.insert(timeline.times[p.actor].ends[p.iteration][p.task]);
    }
    CHECK(places.size() == program.communicators[key.first].ranks.size());
    CHECK(ends.size() == 1);
  }
  std::size_t count = 0;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    CHECK(timeline.times[a].begins == ready[a]);
    for (std::size_t i = 0; i < timeline.iteration_ends.size(); ++i) {
      const FlatTasks& tasks = timeline.tasks[timeline.actors[a].sequence];
      for (std::size_t t = 0; t < tasks.size(); ++t, ++count) {
        const program::Task& task = program.blocks[tasks[t].block].tasks[tasks[t].task];
        if (std::holds_alternative<program::Collective>(task.work)) continue;
        const Price& price = prices[tasks[t].block][tasks[t].task];
        const Instant busy = timeline.times[a].begins[i][t] + price.device;
        CHECK(timeline.times[a].ends[i][t] == std::max(busy, launched[a][i][t]));
      }
    }
  }
  return count;
}

}  // namespace

TEST_CASE("every task begins at the instant at which the last of what it needs is there") {
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  const strategies::Options two{
      .tensor = 4, .data = 2, .gradients = {.overlap = true, .bucket = 50_KB}};
  const strategies::Options three{.tensor = 2, .pipeline = 2, .data = 2, .recompute = {"full"}};
  const strategies::Options stages{.pipeline = 4, .data = 2, .schedule = "gpipe"};
  struct Case {
    int synchronizations, queue;
    std::vector<cost::Rule> waits;
  };
  for (const Case& one : {Case{0, 1000, {}}, Case{1, 1000, {cost::HostWaits::each_pass}},
                          Case{0, 7, {}}, Case{1, 2, {cost::HostWaits::each_launch}}}) {
    INFO(one.queue);
    stack.rules = one.waits;
    stack.rules.push_back(
        cost::OperatorKernels{.of = "optimizer_step", .synchronizations = one.synchronizations});
    for (const strategies::Options& options : {two, three, stages}) {
      const program::Program program = lowered_gpt(4, 4, options, stack);
      const Prices prices = price(program, profile, stack);
      Folding folding = fold(program, cluster("dgx-1v", 1), profile.collective, false);
      folding.launch_queue = one.queue;
      const Timeline timeline = run(program, folding, prices, 2);
      CHECK(check_tight(program, prices, timeline, one.queue) > 1000);
    }
  }
}

}  // namespace stratagem::sim

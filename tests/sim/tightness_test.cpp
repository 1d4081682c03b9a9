// A second, naive reading of what the engine promises: no task begins a picosecond later than
// something holds it.
#include <map>
#include <set>

#include "sim/engine.hpp"
#include "tests/catch.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

namespace {

using program::Stream;

/// When something last held each task of an actor: its launch, the task before it on its stream, or
/// what it waits for. Reads programs and prices, not the engine's own tables.
std::vector<std::vector<Instant>> ready_times(const program::Program& program, const Prices& prices,
                                              const Timeline& timeline, std::size_t actor,
                                              std::vector<std::vector<Instant>>& launched) {
  const program::Sequence& sequence = program.sequences[timeline.actors[actor].sequence];
  std::vector<std::vector<Instant>> result;
  std::map<Stream, Instant> tail;
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
      const std::vector<FlatTask>& tasks = timeline.tasks[actor.sequence];
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
                        const Timeline& timeline) {
  std::vector<std::vector<std::vector<Instant>>> ready;
  std::vector<std::vector<std::vector<Instant>>> launched(timeline.actors.size());
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    ready.push_back(ready_times(program, prices, timeline, a, launched[a]));
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
      const std::vector<FlatTask>& tasks = timeline.tasks[timeline.actors[a].sequence];
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
  for (const int synchronizations : {0, 1}) {
    stack.rules = {
        cost::OperatorKernels{.of = "optimizer_step", .synchronizations = synchronizations}};
    for (const strategies::Options& options :
         {strategies::Options{.tensor = 4, .data = 2, .overlap_gradients = true, .bucket = 50_KB},
          strategies::Options{.tensor = 2, .pipeline = 2, .data = 2, .recompute = {"full"}},
          strategies::Options{.pipeline = 4, .data = 2, .schedule = "gpipe"}}) {
      const program::Program program = lowered_gpt(4, 4, options, stack);
      const Prices prices = price(program, profile, stack);
      const Folding folding = fold(program, cluster("dgx-1v", 1), profile.collective, false);
      const Timeline timeline = run(program, folding, prices, 2);
      CHECK(check_tight(program, prices, timeline) > 1000);
    }
  }
}

}  // namespace stratagem::sim

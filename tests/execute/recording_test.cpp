// What ranks record is a timeline: tasks in order, collectives at one instant.
#include "execute/recording.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "execute/trial.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute::recording_test {
namespace {

constexpr model::GptConfig tiny_gpt{
    .layers = 2, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};

Trial tried(const Planned& plan, int steps) {
  Trial result;
  const auto ranks = static_cast<int>(plan.program.devices.size());
  kernels::run_ranks(ranks, [&](kernels::Communicator& world) {
    Interpreter<float> rank(plan.program, plan.plan.graph(),
                            {.micro_batches = plan.plan.micro_batches}, world);
    int heard = 0;
    const Trial trial =
        execute::trial(plan.program, rank, world, steps, [&](const TimedIteration&) { ++heard; });
    CHECK(heard == steps);
    if (world.rank() == 0) result = trial;
  });
  return result;
}

TEST_CASE("a recorded iteration has every task of every rank, one after another") {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, R"({"data": 2, "pipeline": 2, "schedule": "1f1b"})", 2);
  const Trial trial = tried(plan, 3);
  CHECK(trial.iterations.size() == 3);
  REQUIRE(trial.timeline.actors.size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const int sequence = trial.timeline.actors[rank].sequence;
    const sim::FlatTasks& tasks = trial.timeline.tasks[sequence];
    CHECK(tasks.size() == task_count(plan.program, plan.program.sequences[sequence]));
    const std::vector<sim::Instant>& begins = trial.timeline.times[rank].begins[0];
    const std::vector<sim::Instant>& ends = trial.timeline.times[rank].ends[0];
    sim::Instant last{0};
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      CHECK(begins[i] <= ends[i]);
      if (program::transfers(tasks[i].stream)) continue;
      CHECK(begins[i] >= last);
      last = ends[i];
    }
    CHECK(last <= trial.timeline.iteration_ends[0]);
  }
}

TEST_CASE("the pace of the slowest core stands beside every iteration, if it is asked for") {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, R"({"data": 2})", 1);
  for (const TimedIteration& iteration : tried(plan, 2).iterations)
    CHECK(iteration.pace == Seconds{});
  kernels::run_ranks(2, [&](kernels::Communicator& world) {
    Interpreter<float> rank(plan.program, plan.plan.graph(), {.micro_batches = 1}, world);
    kernels::Yardstick yardstick;
    const Trial trial =
        execute::trial(plan.program, rank, world, 3, {}, {.yardstick = &yardstick, .stolen = {}});
    std::vector<double> paces;
    for (const TimedIteration& iteration : trial.iterations) {
      CHECK(iteration.pace > Seconds{});
      paces.push_back(iteration.pace.value);
    }
    std::vector<double> first = paces;
    world.broadcast(0, std::span(first));
    CHECK(paces == first);  // the slowest core's, on all ranks
  });
}

/// Iterations of one rank before and after each of which a clock of what was stolen is looked at:
/// so much is gone from its one processor, one look after the other, and nothing more after the
/// last.
Trial tried_where(const std::vector<Seconds>& stolen, int steps) {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, "{}", 1);
  Trial result;
  kernels::run_ranks(1, [&](kernels::Communicator& world) {
    Interpreter<float> rank(plan.program, plan.plan.graph(), {.micro_batches = 1}, world);
    std::size_t look = 0;
    const auto clock = [&] { return std::vector{stolen[std::min(look++, stolen.size() - 1)]}; };
    result = execute::trial(plan.program, rank, world, steps, {},
                            {.yardstick = nullptr, .stolen = clock});
  });
  return result;
}

/// The lower median of those that count.
Seconds median_of_counting(const Trial& trial, int steps) {
  std::vector<Seconds> times;
  for (const std::size_t i : counting(trial.iterations, steps))
    times.push_back(trial.iterations[i].time);
  std::ranges::sort(times);
  return times[(times.size() - 1) / 2];
}

TEST_CASE(
    "iterations whose cores were given to others are set aside, and others take their places") {
  // What goes between two iterations is in none of them; 1 s in the second, 2 s in the fourth.
  const Trial trial = tried_where({3_s, 3_s, 5_s, 6_s, 7_s, 7_s, 7_s, 9_s}, 3);
  REQUIRE(trial.iterations.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(trial.iterations[i].stolen == (i == 1 ? 1_s : i == 3 ? 2_s : 0_s));
    CHECK(disturbed(trial.iterations[i]) == (i == 1 || i == 3));
  }
  CHECK(counting(trial.iterations, 3) == std::vector<std::size_t>{0, 2, 4});
  CHECK(trial.recorded == median_of_counting(trial, 3));
}

TEST_CASE("where others always have the cores, those count from which they took least") {
  std::vector<Seconds> clock;
  for (const double taken : {900.0, 500.0, 700.0, 600.0, 800.0, 400.0}) {
    const Seconds before = clock.empty() ? Seconds{} : clock.back();
    clock.push_back(before);
    clock.push_back(before + Seconds{taken});
  }
  const Trial trial = tried_where(clock, 2);
  REQUIRE(trial.iterations.size() == 6);
  CHECK(std::ranges::all_of(trial.iterations, &disturbed));
  CHECK(trial.recorded == median_of_counting(trial, 2));
  std::vector<TimedIteration> even;  // of one length: the second and the sixth lost least
  for (const TimedIteration& one : trial.iterations)
    even.push_back({.time = 1_s, .pace = {}, .stolen = one.stolen});
  CHECK(counting(even, 2) == std::vector<std::size_t>{1, 5});
  CHECK(counting(even, 9).size() == 6);
  // Ticks are coarse: of as many, the longer iteration has lost no less. And what was left alone
  // comes first.
  const auto lost = [](Seconds time, Seconds stolen) {
    return TimedIteration{.time = time, .pace = {}, .stolen = stolen};
  };
  CHECK(counting({lost(30_ms, 10_ms), lost(31_ms, 10_ms), lost(29_ms, 20_ms)}, 1) ==
        std::vector<std::size_t>{0});
  CHECK(counting({lost(30_ms, 10_ms), lost(1_s, 10_ms)}, 1) == std::vector<std::size_t>{1});
}

TEST_CASE("of processors and ranks the one that lost most counts, a fiftieth of the time at most") {
  CHECK_FALSE(disturbed({.time = 1_s, .pace = {}, .stolen = 20_ms}));
  CHECK(disturbed({.time = 1_s, .pace = {}, .stolen = 21_ms}));
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, R"({"data": 2})", 1);
  kernels::run_ranks(2, [&](kernels::Communicator& world) {
    Interpreter<float> rank(plan.program, plan.plan.graph(), {.micro_batches = 1}, world);
    double looks = 0;
    const auto clock = [&] {
      const Seconds gone = looks++ * (1 + world.rank()) * 1_s;
      return std::vector{0_s, gone, 0.5 * gone};
    };
    const Trial trial =
        execute::trial(plan.program, rank, world, 1, {}, {.yardstick = nullptr, .stolen = clock});
    CHECK(trial.iterations.size() == 3);
    for (const TimedIteration& one : trial.iterations) CHECK(one.stolen == 2_s);
  });
}

TEST_CASE("a message begins and ends for both ranks at the same time") {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, R"({"pipeline": 2, "schedule": "gpipe"})", 3);
  const Trial trial = tried(plan, 1);
  std::map<std::pair<sim::Instant, sim::Instant>, int> parts;
  int messages = 0;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const sim::FlatTasks& tasks = trial.timeline.tasks[trial.timeline.actors[rank].sequence];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (!program::transfers(tasks[i].stream)) continue;
      ++messages;
      ++parts[{trial.timeline.times[rank].begins[0][i], trial.timeline.times[rank].ends[0][i]}];
    }
  }
  CHECK(messages == 12);  // 3 micro-batches, forward and backward, 2 ranks
  for (const auto& [times, count] : parts) CHECK(count % 2 == 0);
}

}  // namespace
}  // namespace stratagem::execute::recording_test

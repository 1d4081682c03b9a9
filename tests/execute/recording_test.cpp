// What ranks record is a timeline: tasks in order, meetings at one instant.
#include "execute/recording.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "execute/trial.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute {
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
    const std::vector<sim::FlatTask>& tasks = trial.timeline.tasks[sequence];
    CHECK(tasks.size() == task_count(plan.program, plan.program.sequences[sequence]));
    const std::vector<sim::Instant>& begins = trial.timeline.times[rank].begins[0];
    const std::vector<sim::Instant>& ends = trial.timeline.times[rank].ends[0];
    sim::Instant last{0};
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      CHECK(begins[i] <= ends[i]);
      if (strategies::transfers(tasks[i].stream)) continue;
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

/// Iterations of one rank where so much is gone when a clock is looked at, one look after the other,
/// and nothing more after the last.
Trial tried_where(std::vector<Seconds> stolen, int steps) {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, "{}", 1);
  Trial result;
  kernels::run_ranks(1, [&](kernels::Communicator& world) {
    Interpreter<float> rank(plan.program, plan.plan.graph(), {.micro_batches = 1}, world);
    std::size_t look = 0;
    const auto clock = [&] { return stolen[std::min(look++, stolen.size() - 1)]; };
    result = execute::trial(plan.program, rank, world, steps, {},
                            {.yardstick = nullptr, .stolen = clock});
  });
  return result;
}

TEST_CASE(
    "iterations whose cores were given to others are set aside, and others take their places") {
  const Trial trial = tried_where({5_s, 5_s, 6_s, 6_s, 8_s}, 3);  // in the second and the fourth
  REQUIRE(trial.iterations.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(trial.iterations[i].stolen == (i == 1 ? 1_s : i == 3 ? 2_s : 0_s));
    CHECK(disturbed(trial.iterations[i]) == (i == 1 || i == 3));
  }
  const std::vector<TimedIteration> counting = counted(trial.iterations);
  REQUIRE(counting.size() == 3);
  CHECK(std::ranges::count(counting, trial.recorded, &TimedIteration::time) > 0);
}

TEST_CASE("where others always have the cores, three times as many iterations are all that count") {
  std::vector<Seconds> clock;
  for (int i = 0; i < 20; ++i) clock.push_back(Seconds{static_cast<double>(i)});
  const Trial trial = tried_where(clock, 2);
  CHECK(trial.iterations.size() == 6);
  CHECK(std::ranges::all_of(trial.iterations, &disturbed));
  CHECK(counted(trial.iterations).size() == 6);
}

TEST_CASE("what the rank that lost most lost counts, a fiftieth of the time at most") {
  CHECK_FALSE(disturbed({.time = 1_s, .pace = {}, .stolen = 20_ms}));
  CHECK(disturbed({.time = 1_s, .pace = {}, .stolen = 21_ms}));
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, R"({"data": 2})", 1);
  kernels::run_ranks(2, [&](kernels::Communicator& world) {
    Interpreter<float> rank(plan.program, plan.plan.graph(), {.micro_batches = 1}, world);
    double looks = 0;
    const auto clock = [&] { return looks++ * (1 + world.rank()) * 1_s; };
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
    const std::vector<sim::FlatTask>& tasks =
        trial.timeline.tasks[trial.timeline.actors[rank].sequence];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (!strategies::transfers(tasks[i].stream)) continue;
      ++messages;
      ++parts[{trial.timeline.times[rank].begins[0][i], trial.timeline.times[rank].ends[0][i]}];
    }
  }
  CHECK(messages == 12);  // 3 micro-batches, forward and backward, 2 ranks
  for (const auto& [times, count] : parts) CHECK(count % 2 == 0);
}

}  // namespace
}  // namespace stratagem::execute

// Balanced stages against every way to cut the rows, and against what whole runs take.
#include "search/partition/balanced.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_copy.hpp"
#include "lowering/outline.hpp"
#include "search/partition/space_gap.hpp"
#include "search/sweep.hpp"
#include "sim/price.hpp"
#include "study/least_times.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/search/partition/partition_problems.hpp"
#include "tests/search/small_space.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::search {
namespace {

/// The slowest stage's time, and what the fullest device needs.
using Balanced = std::pair<double, double>;

/// Nothing if a stage does not fit. Adds everything up by itself.
std::optional<Balanced> worth_of_stages(const Rows& rows, const std::vector<int>& ends) {
  Balanced result;
  int from = 0;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    double time = 0, bytes = 0, rises = 0;
    std::vector<double> held(rows.in_flight[stage].size());
    for (; from < ends[stage]; ++from) {
      const Row& row = rows.rows[from];
      time += static_cast<double>(row.time);
      bytes += row.at_steps.value + (rows.versions[stage] - 1) * row.parameters.value;
      for (std::size_t one = 0; one < held.size(); ++one) {
        const InFlight& now = rows.in_flight[stage][one];
        held[one] += now.backward * row.leaves.value + now.weight * row.waits.value;
      }
      rises = std::max(rises, row.rises.value);
    }
    bytes += std::ranges::max(held);
    if (bytes + rises > rows.room.value) return std::nullopt;
    result = {std::max(result.first, time), std::max(result.second, bytes + rises)};
  }
  return result;
}

TEST_CASE("no division into stages is faster than the balanced one, or takes less memory") {
  std::mt19937 random(20261126);
  int possible = 0;
  for (int instance = 0; instance < 300; ++instance) {
    Rows rows = random_rows(random, chosen(random, 3, 9));
    const int stages = chosen(random, 1, std::min<int>(4, static_cast<int>(rows.rows.size())));
    for (int stage = 0; stage < stages; ++stage) {
      rows.in_flight.push_back({{.backward = stages - stage, .weight = chosen(random, 0, 1)}});
      if (chosen(random, 0, 1) == 1) rows.in_flight.back().push_back({.weight = stages});
      rows.versions.push_back(chosen(random, 1, 2));
    }
    std::optional<Balanced> best;
    each_cut(static_cast<int>(rows.rows.size()), stages, [&](const std::vector<int>& ends) {
      const auto one = worth_of_stages(rows, ends);
      if (one && (!best || *one < *best)) best = one;
    });
    const auto found = balanced_stages(rows);
    REQUIRE(found.has_value() == best.has_value());
    if (!found) continue;
    ++possible;
    REQUIRE(found->size() == static_cast<std::size_t>(stages));
    CHECK(worth_of_stages(rows, *found) == best);
  }
  CHECK(possible > 200);
  CHECK(possible < 300);
}

/// Two stages of a GPT whose head takes as long as several layers.
std::string large_vocabulary(const std::string& strategy) {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return R"({"question": "?", "runs": [{"name": "one",
    "model": {"family": "gpt", "layers": 8, "hidden": 1024, "heads": 16, "sequence": 512,
      "tied": false, "vocabulary": 20000},
    "cluster": {"preset": "dgx-2", "gpus": 4},
    "profile": ")" +
         shipped + R"(/profiles/v100-sxm3.json", "stack": ")" + shipped +
         R"(/stacks/megatron-2019.json",
    "training": {"global_batch": 128, "micro_batch": 8, "precision": "fp16", "optimizer": "adam"},
    "strategy": )" +
         strategy + "}]}";
}

study::Run vocabulary_run(const TemporaryFolder& folder, const std::string& strategy) {
  folder.write("a.json", large_vocabulary(strategy));
  return study::read_scenario((folder.path() / "a.json").string()).runs.front();
}

TEST_CASE("rows take what the stages take that they are cut into") {
  const TemporaryFolder folder;
  const study::Run even = vocabulary_run(folder, R"({"pipeline": 4})");
  const study::Run uneven =
      vocabulary_run(folder, R"({"pipeline": 4, "layers_per_stage": [0, 5, 2, 1]})");
  const Rows rows = rows_of(even);
  REQUIRE(rows.rows.size() == 10);
  for (int stage = 0; stage < 4; ++stage)
    CHECK(rows.in_flight[stage] == std::vector<InFlight>{{.backward = 4 - stage}});
  const auto all = joined(rows.rows);
  CHECK(all[0][10].layers == 8);
  CHECK(words(rows.rows, 0, 1) == "embedding");
  CHECK(words(rows.rows, 1, 6) == "layers 0-4");
  CHECK(words(rows.rows, 8, 10) == "layer 7, head");

  const strategies::Plan plan = study::plan_of(uneven);
  const lowering::Outline outline = lowering::outline(plan, uneven.stack, uneven.training);
  const sim::Prices prices =
      sim::price(outline.program, uneven.profile, uneven.stack, uneven.cluster.gpus_per_node());
  study::LeastTimes least(outline.program, prices, uneven);
  std::vector<study::Picoseconds> times(4);
  std::vector<Bytes> leaves(4);
  for (const lowering::OutlinedCell& cell : outline.cells) {
    if (cell.cell.micro_batch != 0) continue;
    for (const int block : cell.blocks)
      times[cell.cell.stage] += least.span(block, cell.device_class);
    leaves[cell.cell.stage] += cell.leaves;
  }
  const std::vector<int> ends = {1, 6, 8, 10};
  int from = 0;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    const Row& own = all[from][ends[stage]];
    CHECK(own.time == times[stage]);
    CHECK(own.at_steps == outline.at_steps[stage]);
    // What a row passes on counts where it is made, and waits where it is read.
    const Bytes sent = stage + 1 < ends.size() ? own.passes_on : Bytes{};
    CAPTURE(stage, own.leaves.value, sent.value, leaves[stage].value);
    CHECK(own.leaves - sent == leaves[stage]);
    from = ends[stage];
  }
}

TEST_CASE("what a balanced stage needs is what its run allocates, and at most 5 % more") {
  const TemporaryFolder folder;
  for (const std::string strategy :
       {R"({"pipeline": 4})", R"({"pipeline": 4, "schedule": "zb-h1"})",
        R"({"pipeline": 4, "schedule": "zb-h2"})",
        R"({"pipeline": 4, "schedule": "zb-h2", "recompute": "full"})"}) {
    CAPTURE(strategy);
    const study::Run run = vocabulary_run(folder, strategy);
    const auto found = searcher("balanced").propose(run);
    REQUIRE(found);
    Bytes most;
    for (const Part& part : found->parts) most = std::max(most, *part.memory);
    const study::Run divided =
        study::with_settings(run, Json::object().set("strategy", found->strategy));
    const double allocated = study::simulate(divided, {}).outcome.memory.allocated.value;
    CHECK(most.value >= allocated);
    CHECK(most.value <= 1.05 * allocated);
  }
}

TEST_CASE("stages of a zero-bubble schedule wait for weight passes of their own") {
  const TemporaryFolder folder;
  const Rows rows = rows_of(vocabulary_run(folder, R"({"pipeline": 4, "schedule": "zb-h2"})"));
  for (const Row& row : rows.rows) {
    // An embedding's weight pass reads tokens and one gradient, a layer's more than half of it all.
    CHECK(row.waits > Bytes{});
    if (row.layers == 1) CHECK(row.waits > 0.3 * row.leaves);
    if (row.layers == 1) CHECK(row.waits < 1.3 * row.leaves);
  }
  // Of stage 0 of 4 (arXiv:2401.10241, figure 3): seven forward passes before a backward pass.
  CHECK(std::ranges::count(rows.in_flight[0], InFlight{.backward = 7}) == 1);
  CHECK(std::ranges::any_of(rows.in_flight[3], [](const InFlight& now) { return now.weight > 1; }));
}

TEST_CASE("a balanced division is within 3 % of the fastest of all when they are simulated") {
  const TemporaryFolder folder;
  const study::Run run = vocabulary_run(folder, R"({"pipeline": 4})");
  const auto found = searcher("balanced").propose(run);
  REQUIRE(found);
  const study::Run divided =
      study::with_settings(run, Json::object().set("strategy", found->strategy));
  const Seconds even = study::simulate(run, {}).outcome.metrics->iteration_time;
  const Seconds time = study::simulate(divided, {}).outcome.metrics->iteration_time;
  CHECK(time < even);
  const SpaceGap gap = space_gap(run, searcher("balanced"), *found, time, 2);
  CHECK(gap.divisions == 84);  // 8 layers on 4 stages, of which two may have none
  CHECK(gap.iteration_time > 0.97 * time);
}

/// A plan's settings without a key of its strategy.
Json without(const Json& settings, const std::string& left_out) {
  const JsonReader all = JsonReader::from_text(settings.text(), "settings");
  Json result = Json::object(), strategy = Json::object();
  for (const std::string& key : all.keys()) {
    if (key != "strategy") result.set(key, copy_of(all.at(key)));
  }
  for (const std::string& key : all.at("strategy").keys()) {
    if (key != left_out) strategy.set(key, copy_of(all.at("strategy").at(key)));
  }
  return result.set("strategy", strategy);
}

TEST_CASE("a search divides the layers of each plan as the searcher does, whatever their number") {
  const TemporaryFolder folder;
  // Four layers on three stages of one rank each, or on two of two.
  const Space space =
      read(folder, with(small_space(R"({"layers_per_stage": ["balanced"], "pipeline": [2, 3],
        "micro_batch": [1], "tensor": [1], "zero": [0], "recompute": ["none"],
        "schedule": ["1f1b"], "sequence_parallel": [false], "gpus": [3, 4]})"),
                        R"(, "gpus": 4)", ""));
  const Swept swept = sweep(space, {});
  REQUIRE(swept.answers.size() == 2);  // three GPUs have no two stages, and four no three
  for (const Answer& answer : swept.answers) {
    const JsonReader settings = JsonReader::from_text(answer.settings.text(), "settings");
    const JsonReader strategy = settings.at("strategy");
    CHECK(strategy.at("layers_per_stage").elements().size() ==
          static_cast<std::size_t>(strategy.at("pipeline").whole_number()));
    const study::Run even = study::resolved_over(
        space.defaults(), without(answer.settings, "layers_per_stage"), "even");
    const auto found = searcher("balanced").propose(even);
    REQUIRE(found);
    CHECK(JsonReader::from_text(found->strategy.text(), "").at("layers_per_stage").dump() ==
          strategy.at("layers_per_stage").dump());
    const study::Run run = study::run_over(space.defaults(), answer.settings, "divided");
    CHECK(study::simulate(run, {}).outcome.metrics->iteration_time == answer.trial.iteration_time);
  }
}

TEST_CASE("stages that share a device, or a plan file, are not balanced") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& strategy) {
    const study::Run run = vocabulary_run(folder, strategy);
    REQUIRE_THROWS_AS(searcher("balanced").propose(run), InputError);
  };
  refused(R"({"pipeline": 1, "data": 4})");
  refused(R"({"pipeline": 4, "schedule": "interleaved"})");
  refused(R"({"pipeline": 4, "schedule": "interlaced"})");
  refused(R"({"pipeline": 4, "swap": 2})");
  refused(R"({"pipeline": 4, "schedule": "pipedream"})");
  refused(R"({"pipeline": 4, "recompute": {"layers": 1, "method": "block"}})");
  refused(R"({"pipeline": 4, "recompute": {"every": 2}})");
  refused(R"({"pipeline": 3, "replicas_per_stage": [2, 1, 1], "layers_per_stage": [4, 2, 2]})");
}

}  // namespace
}  // namespace stratagem::search

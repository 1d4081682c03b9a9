// Replicated stages against every way to cut rows and workers.
#include "search/partition/pipedream.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/search/partition/partition_problems.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::search {
namespace {

/// The slowest stage's time, and the number of stages.
using Replicated = std::pair<std::int64_t, int>;

/// A worker's links are the faster, the later it stands in the line.
std::int64_t sum_time(int first, int workers, Bytes gradients) {
  return workers == 1 ? 0 : static_cast<std::int64_t>(gradients.value) * workers / (1 + first);
}
std::int64_t send_time(int first, Bytes payload) {
  return static_cast<std::int64_t>(payload.value) * 4 / first;
}

std::optional<Replicated> worth_of(const Rows& rows, const std::vector<int>& ends,
                                   const std::vector<int>& worker_ends) {
  Replicated result{0, static_cast<int>(ends.size())};
  int from = 0, first = 0;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    const int replicas = worker_ends[stage] - first;
    const int behind = worker_ends.back() - first;
    if (rows.micro_batches % replicas != 0) return std::nullopt;
    const int turns = rows.micro_batches / replicas;
    const int waiting = std::min(turns, behind / replicas + (behind % replicas > 0 ? 1 : 0));
    std::int64_t time = 0;
    double bytes = 0, rises = 0, gradients = 0;
    for (; from < ends[stage]; ++from) {
      const Row& row = rows.rows[from];
      time += turns * row.time;
      gradients += row.gradients.value;
      bytes += row.at_steps.value + (rows.versions.front() - 1) * row.parameters.value +
               waiting * row.leaves.value;
      rises = std::max(rises, row.rises.value);
    }
    if (bytes + rises > rows.room.value) return std::nullopt;
    time += sum_time(first, replicas, Bytes{gradients});
    if (stage + 1 < ends.size())
      time =
          std::max(time, 2 * turns * send_time(worker_ends[stage], rows.rows[from - 1].passes_on));
    result.first = std::max(result.first, time);
    first = worker_ends[stage];
  }
  return result;
}

std::optional<Replicated> worth_of(const Rows& rows, const std::vector<ReplicatedStage>& stages) {
  std::vector<int> ends, worker_ends;
  for (const ReplicatedStage& stage : stages) {
    ends.push_back(stage.end);
    worker_ends.push_back((worker_ends.empty() ? 0 : worker_ends.back()) + stage.replicas);
  }
  return worth_of(rows, ends, worker_ends);
}

TEST_CASE("no stages and replicas are faster than PipeDream's, or as fast with fewer stages") {
  std::mt19937 random(20261126);
  int possible = 0, replicated = 0;
  for (int instance = 0; instance < 300; ++instance) {
    Rows rows = random_rows(random, chosen(random, 3, 6));
    rows.versions = {chosen(random, 1, 2)};
    const Workers workers{.count = chosen(random, 1, 5), .sums = &sum_time, .sends = &send_time};
    std::optional<Replicated> best;
    for (int stages = 1; stages <= workers.count; ++stages) {
      each_cut(static_cast<int>(rows.rows.size()), stages, [&](const std::vector<int>& ends) {
        each_cut(workers.count, stages, [&](const std::vector<int>& worker_ends) {
          const auto one = worth_of(rows, ends, worker_ends);
          if (one && (!best || *one < *best)) best = one;
        });
      });
    }
    const auto found = replicated_stages(rows, workers);
    REQUIRE(found.has_value() == best.has_value());
    if (!found) continue;
    ++possible;
    replicated += std::ranges::any_of(*found, [](const auto& stage) { return stage.replicas > 1; });
    CHECK(worth_of(rows, *found) == best);
  }
  CHECK(possible > 200);
  CHECK(possible < 300);
  CHECK(replicated > 50);
}

std::string small_gpt(int workers, int micro_batches) {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return R"({"question": "?", "runs": [{"name": "one",
    "model": {"family": "gpt", "layers": 8, "hidden": 1024, "heads": 16, "sequence": 512,
      "tied": false, "vocabulary": 20000},
    "cluster": {"preset": "dgx-2", "gpus": )" +
         std::to_string(workers) + R"(}, "profile": ")" + shipped +
         R"(/profiles/v100-sxm3.json", "stack": ")" + shipped +
         R"(/stacks/megatron-2019.json", "training": {"micro_batch": 8, "precision": "fp16",
      "optimizer": "adam", "global_batch": )" +
         std::to_string(8 * micro_batches) + R"(}, "strategy": {"pipeline": )" +
         std::to_string(workers) + R"(, "schedule": "pipedream"}}]})";
}

study::Run workers_run(const TemporaryFolder& folder, const std::string& text) {
  folder.write("a.json", text);
  return study::read_scenario((folder.path() / "a.json").string()).runs.front();
}

TEST_CASE("PipeDream's stages run, on all workers, and are no slower than one a worker") {
  const TemporaryFolder folder;
  const study::Run run = workers_run(folder, small_gpt(4, 12));
  const auto found = searcher("pipedream").propose(run);
  REQUIRE(found);
  int workers = 0;
  for (const Part& part : found->parts) workers += part.replicas;
  CHECK(workers == 4);
  const study::Run divided =
      study::with_settings(run, Json::object().set("strategy", found->strategy));
  const study::Outcome straight = study::simulate(run, {}).outcome;
  const study::Outcome outcome = study::simulate(divided, {}).outcome;
  CHECK(outcome.metrics->iteration_time < straight.metrics->iteration_time);
  // The objective leaves out only what adds to the slowest stage.
  CHECK(outcome.metrics->iteration_time > found->objective);
}

TEST_CASE("as many workers as do not divide the micro-batches are no replicas") {
  const TemporaryFolder folder;
  const auto found = searcher("pipedream").propose(workers_run(folder, small_gpt(4, 7)));
  REQUIRE(found);
  for (const Part& part : found->parts) CHECK(part.replicas == 1);
}

TEST_CASE("replicas want a schedule in which they take turns, and ranks in order") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& strategy) {
    const study::Run run =
        workers_run(folder, with(small_gpt(4, 12), R"("schedule": "pipedream")", strategy));
    REQUIRE_THROWS_AS(searcher("pipedream").propose(run), InputError);
  };
  refused(R"("schedule": "gpipe")");
  refused(R"("stage_order": [0, 2, 1, 3])");
}

TEST_CASE("data ranks sum gradients whether or not there are replicas beside them") {
  const TemporaryFolder folder;
  const auto objective = [&](int data) {
    // As many micro-batches for each rank.
    const std::string pipeline = R"("pipeline": 2)", gpus = R"("gpus": 2)";
    std::string text =
        with(small_gpt(2, 12), pipeline, pipeline + R"(, "data": )" + std::to_string(data));
    text = with(text, gpus, R"("gpus": )" + std::to_string(2 * data));
    text = with(text, R"("global_batch": 96)", R"("global_batch": )" + std::to_string(96 * data));
    const auto found = searcher("pipedream").propose(workers_run(folder, text));
    REQUIRE(found);
    return found->objective;
  };
  CHECK(objective(2) > objective(1));
}

}  // namespace
}  // namespace stratagem::search

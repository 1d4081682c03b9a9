// Orders that are found for whole runs, held against schedules that people have found.
#include "search/order/pipeline_cells.hpp"

#include <algorithm>
#include <map>

#include "base/input_error.hpp"
#include "strategies/language/plan_text.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::search {
namespace {

using placement::Cell;
using placement::CellPass;

/// A run of four stages of a GPT that computes longer than it launches. `more` are keys of the run.
std::string four_stages(const std::string& more, int vocabulary = 512) {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return R"({"question": "?", "runs": [{"name": "one",
    "model": {"family": "gpt", "layers": 8, "hidden": 1024, "heads": 16, "sequence": 512,
      "tied": false, "vocabulary": )" +
         std::to_string(vocabulary) + R"(},
    "cluster": {"preset": "dgx-2", "gpus": 4},
    "profile": ")" +
         shipped + R"(/profiles/v100-sxm3.json", "stack": ")" + shipped +
         R"(/stacks/megatron-2019.json",
    "training": {"global_batch": 64, "micro_batch": 2, "precision": "fp16", "optimizer": "adam"},
    )" + more +
         "}]}";
}

const std::string stages_alone =
    R"~({"stages": ["embedding, layers.[0-1]", "layers.[2-3]", "layers.[4-5]",)~"
    R"~( "layers.[6-7], head"], "primitives": [{"op-assign": "stage(i)", "device": "i"})~";

struct Found {
  study::Run run;
  PipelineCells cells;
  std::optional<Repetend> repetend;
};

Found found_for(const TemporaryFolder& folder, const std::string& scenario) {
  folder.write("a.json", scenario);
  study::Run run = study::read_scenario((folder.path() / "a.json").string()).runs.front();
  PipelineCells cells = cells_of(run, study::plan_of(run));
  auto repetend = best_repetend(cells.problem, {.effort = 1'000'000});
  return {std::move(run), std::move(cells), std::move(repetend)};
}

study::Outcome simulated(const study::Run& run) { return study::simulate(run, {}).outcome; }

strategies::Plan plan_with(const Found& found) {
  return with_order(study::plan_of(found.run), found.cells, *found.repetend);
}

study::Outcome simulated_with_order(const Found& found) {
  study::Run run = found.run;
  run.plan = JsonReader::from_text(strategies::file_text(plan_with(found)), "found");
  return simulated(run);
}

double time_of(const study::Outcome& outcome) { return outcome.metrics->iteration_time.value; }

}  // namespace

TEST_CASE("of four even stages the found order is 1F1B") {
  const TemporaryFolder folder;
  const Found found =
      found_for(folder, four_stages(R"("strategy": {"pipeline": 4, "schedule": "gpipe"})"));
  REQUIRE(found.repetend);
  CHECK(found.cells.kinds.size() == 8);
  CHECK(found.cells.problem.held.size() == 4);
  // As many in flight on each stage as there are stages from it on.
  for (const Held& one : found.cells.problem.held) {
    const int stage = found.cells.kinds[one.from].stage;
    CHECK(found.repetend->peaks[one.device] == (4 - stage) * one.amount);
  }
  const Found same =
      found_for(folder, four_stages(R"("strategy": {"pipeline": 4, "schedule": "1f1b"})"));
  CHECK(same.repetend->begins == found.repetend->begins);  // whatever the run's own order
  const study::Outcome by_hand = simulated(same.run), by_search = simulated_with_order(found);
  CHECK(time_of(by_search) == time_of(by_hand));
  CHECK(by_search.memory.used == by_hand.memory.used);
}

TEST_CASE("where the ends stand on all devices the found order is as fast as the interlaced one") {
  const TemporaryFolder folder;
  const int vocabulary = 65536;  // the ends take as long as some layers
  const Found found = found_for(
      folder,
      four_stages(R"("strategy": {"pipeline": 4, "embedding": "all", "head": "all"})", vocabulary));
  REQUIRE(found.repetend);
  folder.write("b.json",
               four_stages(R"("strategy": {"pipeline": 4, "schedule": "interlaced"})", vocabulary));
  const auto by_hand =
      simulated(study::read_scenario((folder.path() / "b.json").string()).runs.front());
  CHECK(time_of(simulated_with_order(found)) < 1.01 * time_of(by_hand));
  CHECK(time_of(simulated_with_order(found)) < 0.95 * time_of(simulated(found.run)));  // 1F1B's
}

TEST_CASE("a plan file needs no op-orders, and those it has are kept") {
  const TemporaryFolder folder;
  folder.write("free.json", stages_alone + "]}");
  folder.write("asked.json", stages_alone + R"~(, {"op-order": ["F(i, m+S)", "B(i, m)"]}]})~");

  const Found free = found_for(folder, four_stages(R"("plan": "free.json")"));
  REQUIRE(free.repetend);
  CHECK(free.repetend->period == free.repetend->least_period);
  const Found asked = found_for(folder, four_stages(R"("plan": "asked.json")"));
  REQUIRE(asked.repetend);
  CHECK(asked.cells.problem.asked.size() == 4);
  CHECK(asked.repetend->period >= free.repetend->period);
  std::map<Cell, int> places;
  const strategies::Plan plan = plan_with(asked);
  for (const std::vector<Cell>& chain : plan.orders().chains) {
    for (const Cell& cell : chain) places.emplace(cell, static_cast<int>(places.size()));
  }
  int compared = 0;
  for (const auto& [cell, place] : places) {
    const Cell later{cell.stage, cell.micro_batch + 4, CellPass::forward};
    if (cell.pass != CellPass::backward || !places.contains(later)) continue;
    CHECK(places.at(later) < place);
    ++compared;
  }
  CHECK(compared == 4 * (32 - 4));
}

TEST_CASE("with less memory fewer micro-batches are in flight, and the found order fits") {
  const TemporaryFolder folder;
  const std::string strategy = R"("strategy": {"pipeline": 4, "schedule": "1f1b"})";
  const Found roomy = found_for(folder, four_stages(strategy));
  const Bytes most = simulated(roomy.run).memory.used;
  const double share = 0.95 * (most / roomy.run.profile.memory.size.value);
  const std::string less = R"(, "what_if": {"memory": )" + std::to_string(share) + "}";
  const Found tight = found_for(folder, four_stages(strategy + less));
  REQUIRE(tight.repetend);
  CHECK(simulated(tight.run).status == study::Outcome::Status::out_of_memory);
  CHECK(simulated_with_order(tight).status == study::Outcome::Status::ok);
  CHECK(tight.repetend->period > roomy.repetend->period);
}

TEST_CASE("op-orders that are not the same for all micro-batches are refused") {
  const TemporaryFolder folder;
  for (const char* order : {R"~(["F(i, M-1)", "B(i, 0)"])~", R"~(["F(i, 0)", "B(i, 0)"])~"}) {
    INFO(order);
    folder.write("p.json", stages_alone + R"~(, {"op-order": )~" + order + "}]}");
    CHECK_THROWS_AS(found_for(folder, four_stages(R"("plan": "p.json")")), InputError);
  }
}

TEST_CASE("plans whose cells do not all repeat alike are refused") {
  const TemporaryFolder folder;
  for (const char* strategy :
       {R"({"pipeline": 4, "schedule": "chimera"})", R"({"pipeline": 4, "schedule": "pipedream"})",
        R"({"pipeline": 4, "schedule": "1f1b", "token_slices": [256, 256]})",
        R"({"pipeline": 4, "schedule": "bpipe"})"}) {
    INFO(strategy);
    CHECK_THROWS_AS(found_for(folder, four_stages(R"("strategy": )" + std::string(strategy))),
                    InputError);
  }
}

}  // namespace stratagem::search

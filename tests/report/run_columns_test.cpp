// Columns of runs against closed forms of what they say.
#include "report/run_columns.hpp"

#include <algorithm>

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::report {
namespace {

std::vector<study::Result> results_of(const std::string& text, study::Scenario& scenario) {
  const TemporaryFolder folder;
  folder.write("a.json", text);
  scenario = study::read_scenario((folder.path() / "a.json").string());
  std::vector<study::Outcome> outcomes;
  for (const study::Run& run : scenario.runs)
    outcomes.push_back(study::simulate_or_refuse(run, {}).outcome);
  return study::compare(scenario, std::move(outcomes));
}

/// The GPUs of the run "four" cost 3 an hour.
std::string priced() {
  return with(small_scenario(), R"({"name": "four",)",
              R"({"name": "four", "cluster": {"price_per_gpu_hour": 3},)");
}

const RunColumn& column(const std::string& name) {
  return *std::ranges::find(run_columns(), name, &RunColumn::name);
}

TEST_CASE("columns of a run are what their definitions say") {
  study::Scenario scenario;
  const auto results = results_of(priced(), scenario);
  const study::Result& four = results.at(1);
  const auto value = [&](const std::string& name) { return *column(name).value(four); };
  const double time = four.outcome.metrics->iteration_time.value;
  CHECK(value("iteration_time") == time);
  CHECK(value("tokens_per_s") == Approx(8 * 32 / time));  // 8 samples of 32 tokens
  CHECK(value("tokens_per_s_per_gpu") == Approx(8 * 32 / time / 4));
  // Four GPUs for the seconds of a billion tokens, at 3 an hour.
  CHECK(value("cost") == Approx(1e9 / (8 * 32 / time) / 3600 * 4 * 3));
  CHECK_FALSE(column("cost").value(results.at(0)));  // nobody says what that one's GPU costs
  // A V100's matrix products reach 125 TFLOP/s (SXM3 at 350 W: as its profile has it).
  const double peak = scenario.runs[1].profile.peak.at("fp16").value / 1_TFLOPps;
  CHECK(value("mfu") == Approx(value("model_tflops") / peak));
  CHECK(value("hfu") == Approx(value("hardware_tflops") / peak));
  CHECK(value("exposed") + value("idle") < 1);
  CHECK(value("memory_share") ==
        Approx(value("memory") / scenario.runs[1].profile.memory.size.value.value));
}

TEST_CASE("a run that does not fit has memory and no speed, a refused one neither") {
  study::Scenario scenario;
  const std::string text = with(small_scenario(), R"("runs": [)",
                                R"("runs": [{"name": "large, \"it\" is", "cluster": {"gpus": 1},
        "model": {"hidden": 16384, "layers": 40}},
      {"name": "refused", "cluster": {"gpus": 1}, "strategy": {"pipeline": 2}},
      {"name": "cheap", "cluster": {"price_per_gpu_hour": -2}},)");
  const auto results = results_of(text, scenario);
  CHECK_FALSE(column("iteration_time").value(results[0]));
  CHECK(*column("memory_share").value(results[0]) > 1);
  CHECK_FALSE(column("memory").value(results[1]));
  const std::string table = table_of(results, {&column("iteration_time"), &column("memory")});
  CHECK_THAT(table, ContainsSubstring("does not run: needs"));
  CHECK_THAT(table, ContainsSubstring("refused:"));
  const std::string csv = csv_of(results);
  CHECK(std::ranges::count(csv, '\n') == 6);
  CHECK_THAT(csv, ContainsSubstring("\"cheap\",\"\",refused,,"));
  CHECK_THAT(csv, ContainsSubstring("\"large, \"\"it\"\" is\",\"\",out_of_memory,1,,,"));
}

}  // namespace
}  // namespace stratagem::report

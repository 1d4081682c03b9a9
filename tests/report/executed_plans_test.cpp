// Plans that were executed, held to what was simulated of them.
#include "report/executed_plans.hpp"

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

std::string execution(const std::string& run, const std::string& times, const std::string& peaks) {
  return R"({"status": "measured", "precision": "fp32", "host": "h", "run": ")" + run +
         R"(", "agrees": true, "iteration_times_s": [)" + times + R"(], "peak_live_bytes": [)" +
         peaks + R"(], "arena_bytes": [8, 9],
         "predicted_peak_live_bytes": [7, 7]})";
}

/// The same with the pace of every iteration.
std::string paced(std::string execution, const std::string& paces) {
  return execution.insert(execution.size() - 1, R"(, "iteration_paces_s": [)" + paces + "]");
}

const std::string as_simulated = R"({"runs": [
  {"name": "a", "status": "ok", "iteration_time_s": 1.0},
  {"name": "b", "status": "ok", "iteration_time_s": 1.5},
  {"name": "c", "status": "ok", "iteration_time_s": 3.0},
  {"name": "never executed", "status": "ok", "iteration_time_s": 3.0},
  {"name": "too large", "status": "does_not_fit"}]})";

/// What `executed_plans` makes of these executions.
report::ExecutedPlans plans_of(const std::vector<std::string>& executions,
                               const std::string& predictions = as_simulated) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  folder.write("simulated.json", predictions);
  std::vector<std::string> files;
  for (const std::string& text : executions) {
    const std::string name = std::to_string(files.size()) + ".json";
    folder.write(name, text);
    files.push_back(path(name));
  }
  return report::executed_plans(path("simulated.json"), files);
}

}  // namespace

TEST_CASE("medians are of all iterations of all executions of a run") {
  const report::ExecutedPlans plans =
      plans_of({execution("a", "2, 3", "7, 6"), execution("b", "1.2", "6, 6"),
                execution("a", "9, 1", "7, 7")});
  REQUIRE(plans.plans.size() == 2);
  CHECK(plans.not_executed == std::vector<std::string>{"c", "never executed"});
  CHECK(plans.plans[0].run == "a");
  CHECK(plans.plans[0].measured() == Seconds{2.5});
  CHECK(plans.plans[0].error() == Approx(1 / 2.5 - 1));
  CHECK(plans.plans[0].peak == 7_B);
  CHECK(plans.plans[0].arena == 9_B);
  CHECK(plans.plans[1].error() == Approx(0.25));
  CHECK(plans.median_error() == Approx((0.6 + 0.25) / 2));
  CHECK(plans.worst_error() == Approx(0.6));
  const std::string text = report::to_markdown(plans);
  CHECK(text.find("| a | 2500 ms | 1000 to 9000 ms | 1000 ms | -60.0 % | 7 | 7 | 9 |") !=
        std::string::npos);
  CHECK(text.find("not the peak predicted: b") != std::string::npos);
  CHECK(text.find("not the peak predicted: a") == std::string::npos);
}

TEST_CASE(
    "an execution that was not compared with one device is told, and disagrees with nothing") {
  std::string unchecked = execution("a", "2", "7");
  const std::string agrees = R"("agrees": true)";
  unchecked.replace(unchecked.find(agrees), agrees.size(), R"("compared_with_one_device": false)");
  const report::ExecutedPlans plans = plans_of({unchecked, execution("b", "1", "7")});
  CHECK(plans.plans[0].agrees);
  const JsonReader json = JsonReader::from_text(report::to_json(plans).text(), "plans.json");
  CHECK_FALSE(json.at("plans").elements()[0].has("agrees"));
  CHECK(json.at("plans").elements()[1].at("agrees").boolean());
  const std::string text = report::to_markdown(plans);
  CHECK(text.find("not compared with one device: a") != std::string::npos);
  CHECK(text.find("not compared with one device: b") == std::string::npos);
}

TEST_CASE("plans that differ by more than 10 % are to be in the order that was predicted") {
  const report::ExecutedPlans plans = plans_of(
      {execution("a", "1.8", "7"), execution("b", "1.5", "7"), execution("c", "1.6", "7")});
  // a takes longer than both others; c and b differ by less than a tenth.
  const auto wrong = plans.in_wrong_order();
  REQUIRE(wrong.size() == 2);
  CHECK(wrong[0] == std::pair<std::string, std::string>("a", "b"));
  CHECK(wrong[1] == std::pair<std::string, std::string>("a", "c"));
  const JsonReader json = JsonReader::from_text(report::to_json(plans).text(), "plans.json");
  CHECK(json.at("in_wrong_order").elements().size() == 2);
  CHECK(json.at("plans").elements()[2].at("error").number() == Approx(3 / 1.6 - 1));
}

TEST_CASE("what a core did at several paces is held to the prediction at one") {
  // Profiles of paces 1 and 2; the machine was at 1, 2 and 4, and every time was as predicted for
  // it.
  const std::string predictions = R"({"runs": [
    {"name": "a", "status": "ok", "iteration_time_s": 1.0, "pace_s": 1},
    {"name": "b", "status": "ok", "iteration_time_s": 4.0, "pace_s": 2}]})";
  const std::string a = execution("a", "1, 4, 2", "7"), b = execution("b", "2, 4", "7");
  const auto plans = plans_of({paced(a, "1, 4, 2"), paced(b, "1, 2")}, predictions);
  REQUIRE(plans.pace);
  CHECK(plans.pace->value == Approx(2));
  CHECK(plans.plans[0].measured() == Seconds{2});
  CHECK(plans.plans[0].times.front() == Seconds{1});
  CHECK(plans.plans[0].at_pace().value == Approx(2));
  CHECK(plans.plans[1].at_pace().value == Approx(4));
  CHECK(plans.worst_error() == Approx(0).margin(1e-12));
  CHECK(plans.in_wrong_order().empty());
  CHECK_THAT(report::to_markdown(plans), ContainsSubstring("one pace: 2"));

  // One execution that says nothing of it leaves all as they are.
  const auto unknown = plans_of({paced(a, "1, 4, 2"), b}, predictions);
  CHECK_FALSE(unknown.pace);
  CHECK(unknown.plans[1].error() == Approx(4.0 / 3 - 1));
  CHECK_THROWS_AS(plans_of({paced(a, "1, 0, 2")}, predictions), InputError);
  CHECK_THROWS_WITH(plans_of({paced(a, "1, 2")}, predictions),
                    ContainsSubstring("/iteration_paces_s: expected none, or a pace for each"));
}

TEST_CASE("runs that were not simulated, and executions without times, are refused") {
  CHECK_THROWS_AS(plans_of({execution("too large", "1", "7")}), InputError);
  CHECK_THROWS_AS(plans_of({execution("a", "", "7")}), InputError);
  CHECK_THROWS_AS(plans_of({execution("a", "-1", "7")}), InputError);
  std::string stopped = execution("a", "1", "7"), narrow = stopped;
  stopped.replace(stopped.find("measured"), 8, "stopped");
  CHECK_THROWS_WITH(plans_of({stopped}), ContainsSubstring("timed to its end"));
  narrow.replace(narrow.find("fp32"), 4, "fp16");
  CHECK_THROWS_WITH(plans_of({execution("a", "1", "7"), narrow}), ContainsSubstring("fp32 on h"));
  CHECK_THROWS_WITH(plans_of({execution("d", "1", "7")}),
                    ContainsSubstring("/run: expected a run that"));
}

TEST_CASE("iterations that were set aside are counted, and are in no median") {
  std::string disturbed = execution("a", "2, 3, 4", "7, 6");
  disturbed.insert(
      disturbed.size() - 1,
      R"(, "counted_though_disturbed": 1, "disturbed_iterations": [{"time_s": 9, "stolen_s": 4},
                                                 {"time_s": 8, "stolen_s": 3}])");
  const report::ExecutedPlans plans = plans_of({disturbed, execution("b", "1.2", "6, 6")});
  CHECK(plans.plans[0].set_aside == 2);
  CHECK(plans.plans[0].disturbed == 1);
  CHECK(plans.plans[0].measured() == Seconds{3});
  CHECK_THAT(report::to_markdown(plans),
             ContainsSubstring("disturbed by others on the cores: of a 2 set aside, 1 counted"));
  const JsonReader json = JsonReader::from_text(report::to_json(plans).text(0), "t");
  CHECK(json.at("plans").elements()[0].at("set_aside").number() == 2);
  CHECK(json.at("plans").elements()[1].at("disturbed").number() == 0);
}

TEST_CASE("a run that is not predicted is executed, shown with the reason, and held to nothing") {
  const std::string predictions = R"({"runs": [
    {"name": "a", "status": "ok", "iteration_time_s": 1.0},
    {"name": "u", "status": "refused", "reason": "groups of 4 were not measured"},
    {"name": "never executed", "status": "refused", "reason": "nor this"}]})";
  // As `execute` writes it then: without a predicted peak.
  std::string bare = execution("u", "2, 4, 9", "7, 6");
  const std::string peak = R"("predicted_peak_live_bytes": [7, 7])";
  bare.replace(bare.find(peak), peak.size(), R"("no_prediction": "groups of 4 were not measured")");
  const auto both = plans_of({execution("a", "2", "7, 7"), bare}, predictions);
  REQUIRE(both.plans.size() == 1);
  REQUIRE(both.unpredicted.size() == 1);
  CHECK(both.unpredicted[0].plan.measured() == Seconds{4});
  CHECK(both.median_error() == Approx(0.5));
  CHECK(both.as_expected());
  CHECK_THAT(
      report::to_markdown(both),
      ContainsSubstring("no time predicted: u, measured 4000 ms: groups of 4 were not measured"));
  const JsonReader json = JsonReader::from_text(report::to_json(both).text(), "plans.json");
  CHECK(json.at("unpredicted").elements().at(0).at("run").text() == "u");
  CHECK(json.at("unpredicted").elements().at(0).at("measured_s").number() == 4);

  // Of nothing else there are no errors to take a median of; what disagrees is told.
  bare.replace(bare.find("true"), 4, "false");
  const auto alone = plans_of({bare}, predictions);
  CHECK_FALSE(alone.as_expected());
  CHECK_THAT(report::to_markdown(alone),
             ContainsSubstring("computes something else than one device: u") &&
                 !ContainsSubstring("median error"));
  CHECK_FALSE(JsonReader::from_text(report::to_json(alone).text(), "p").has("median_error"));
}

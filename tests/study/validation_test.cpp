// Errors and verdicts of many runs: what counts, how it is summed up, and what breaks a limit.
#include "study/validation.hpp"

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"
#include "topology/presets.hpp"

using namespace stratagem;
using study::Figure;
using study::Limits;
using study::Outcome;
using study::Validation;
using study::Verdict;
using Kind = Verdict::Kind;

namespace {

study::Run run_named(const std::string& name, const std::string& group) {
  study::Run run{.origin = {.file = "some/runs.json", .path = "/runs/0"},
                 .name = name,
                 .compared = {.group = group},
                 .cluster = topology::presets().front().build(1),
                 .strategy = JsonReader::from_text("{}", "a.json")};
  run.profile.memory.size.value = 16_GiB;
  return run;
}

/// Runs whose predictions are `ratio` of what was measured, in one scenario.
std::vector<study::Played> played(const std::vector<double>& ratios) {
  std::vector<study::Played> all(1);
  for (std::size_t i = 0; i < ratios.size(); ++i)
    all[0].scenario.runs.push_back(run_named("run " + std::to_string(i), ""));
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const Figure time{.name = "iteration_time", .predicted = 2 * ratios[i], .measured = 2};
    all[0].results.push_back({&all[0].scenario.runs[i], {.metrics = sim::Metrics{}}, {time}});
  }
  return all;
}

Verdict verdict(bool measured, double needed, double capacity,
                const std::string& group = "a group") {
  return {group, nullptr, measured, Bytes{needed}, Bytes{capacity}};
}

}  // namespace

TEST_CASE("errors are summed up as their median size, their mean and the worst, with signs") {
  const auto runs = played({1.02, 0.9, 1.04, 0.7});
  const Validation validation = study::validate(runs, {});
  REQUIRE(validation.statistics.size() == 1);
  const study::ErrorStatistics& times = validation.statistics.front();
  CHECK(times.group == "runs");  // a run without a group counts under its file
  CHECK(times.figure == "iteration_time");
  CHECK(times.count == 4);
  CHECK(close(times.median, 0.07, 1e-9));  // of 2, 4, 10 and 30 %: between 4 and 10
  CHECK(close(times.mean_absolute, 0.115, 1e-9));
  CHECK(close(times.mean, -0.085, 1e-9));
  CHECK(close(times.worst, -0.3, 1e-9));
  CHECK(times.worst_run == "run 3");
}

TEST_CASE("what is from memory, and what a stack was fitted to, is shown but counts nowhere") {
  auto runs = played({1, 1.5, 1.2});
  runs[0].results[0].figures[0].fitted = true;
  runs[0].results[1].figures[0].gates = false;
  const Validation validation = study::validate(runs, {});
  CHECK(validation.compared.size() == 3);
  REQUIRE(validation.statistics.size() == 1);
  CHECK(validation.statistics[0].count == 1);
  CHECK(close(validation.statistics[0].median, 0.2, 1e-9));
}

TEST_CASE("a selection leaves out other figures and groups") {
  auto runs = played({1, 1.5});
  runs[0].scenario.runs[1].compared.group = "the others";
  CHECK(study::validate(runs, {.figure = "peak_used"}).compared.empty());
  const Validation others = study::validate(runs, {.group = "other"});
  REQUIRE(others.compared.size() == 1);
  CHECK(others.compared[0].result->run->name == "run 1");
}

// The first preset is a DGX-1V, whose processors have 512 GiB; the run's GPUs have 16.
TEST_CASE("a verdict goes by the processors' memory where that is fuller than the GPUs'") {
  const auto verdict_on = [](Bytes used, Bytes on_host) {
    auto runs = played({1});
    study::Result& result = runs[0].results[0];
    result.figures = {Figure{.name = "fits", .predicted = 0, .measured = 0}};
    result.outcome.memory.used = used;
    result.outcome.hosts.resize(1);
    result.outcome.hosts[0].peak.total = on_host;
    const Validation validation = study::validate(runs, {});
    REQUIRE(validation.verdicts.size() == 1);
    return validation.verdicts[0];
  };
  const Verdict by_host = verdict_on(8_GiB, 600_GiB);
  CHECK(by_host.needed == 600_GiB);
  CHECK(by_host.capacity == 512_GiB);
  CHECK(by_host.kind() == Kind::right);
  const Verdict by_gpu = verdict_on(20_GiB, 600_GiB);
  CHECK(by_gpu.needed == 20_GiB);
  CHECK(by_gpu.capacity == 16_GiB);
}

TEST_CASE("verdicts are undecided where the capacity lies within a tenth of the prediction") {
  CHECK(verdict(true, 10, 12).kind() == Kind::right);
  CHECK(verdict(false, 10, 8).kind() == Kind::right);
  CHECK(verdict(false, 10, 12).kind() == Kind::wrong);
  CHECK(verdict(true, 10, 8).kind() == Kind::wrong);
  CHECK(verdict(true, 10, 9.1).kind() == Kind::undecided);
  CHECK(verdict(false, 10, 10.9).kind() == Kind::undecided);
}

TEST_CASE("a verdict compares what was measured with the memory of the profile") {
  auto runs = played({1});
  runs[0].results[0].outcome.memory.used = 20_GiB;
  runs[0].results[0].figures.push_back({.name = "fits", .predicted = 0, .measured = 1});
  const Validation validation = study::validate(runs, {.figure = "fits"});
  CHECK(validation.compared.empty());
  REQUIRE(validation.verdicts.size() == 1);
  CHECK(validation.verdicts[0].kind() == Kind::wrong);
  CHECK(validation.verdicts[0].capacity.value == (16_GiB).value);
}

TEST_CASE("a limit that does not hold is one line") {
  const auto runs = played({1.02, 0.9, 1.04, 0.7});  // errors of 2, 4, 10, 30 %: a median of 7 %
  Validation validation = study::validate(runs, {});
  const auto broken = [&](const std::string& group, double at_most) {
    return study::broken(validation, {.medians = {{group, "iteration_time", at_most}}});
  };
  CHECK(study::broken(validation, {}).empty());
  CHECK(broken("", 0.08).empty());
  CHECK(broken("runs", 0.08).empty());
  const std::vector<std::string> above{
      "runs: iteration_time: expected a median error of at most 5.0 %, found 7.0 %"};
  CHECK(broken("", 0.05) == above);
  CHECK(broken("runs", 0.05) == above);
}

// Two of the first group's three verdicts are wrong, and one of the other's two.
TEST_CASE("wrong verdicts have a limit in each group, which is 0 where none is named") {
  Validation validation;
  validation.verdicts = {verdict(true, 10, 8), verdict(true, 10, 8, "others"),
                         verdict(false, 10, 12), verdict(true, 10, 12),
                         verdict(true, 10, 12, "others")};
  const auto broken = [&](std::vector<Limits::AtMost> limits) {
    return study::broken(validation, {.medians = {}, .wrong_verdicts = std::move(limits)});
  };
  using Lines = std::vector<std::string>;
  CHECK(study::broken(validation, {}).empty());
  CHECK(broken({{"a group", "fits", 2}, {"others", "fits", 1}}).empty());
  CHECK(broken({{"", "fits", 2}}).empty());
  CHECK(broken({{"", "fits", 1}}) ==
        Lines{"a group: fits: expected at most 1 wrong verdicts, found 2"});
  CHECK(broken({{"a group", "fits", 2}}) ==
        Lines{"others: fits: expected at most 0 wrong verdicts, found 1"});
  CHECK(broken({}) == Lines{"a group: fits: expected at most 0 wrong verdicts, found 2",
                            "others: fits: expected at most 0 wrong verdicts, found 1"});
  CHECK(broken({{"a group", "fits", 3}, {"others", "fits", 3}, {"third", "fits", 0}}) ==
        Lines{"third: fits: expected figures that this limit holds for, found none"});
}

TEST_CASE("a figure of a group has a limit, and a limit has figures") {
  const auto runs = played({1.02});
  const Validation validation = study::validate(runs, {});
  CHECK(study::broken(validation, {.medians = {{"others", "iteration_time", 1}}}) ==
        std::vector<std::string>{
            "runs: iteration_time: expected a limit of the median error, found none",
            "others: iteration_time: expected figures that this limit holds for, found none"});
}

TEST_CASE("limits of what is not selected are left out") {
  const Limits limits{
      .medians = {{"a group", "iteration_time", 1}, {"b", "peak_used", 1}},
      .wrong_verdicts = std::vector<Limits::AtMost>{{"a group", "fits", 1}, {"b", "fits", 2}}};
  CHECK(study::selected(limits, {}).medians.size() == 2);
  CHECK(study::selected(limits, {}).wrong_verdicts.value().size() == 2);
  const Limits times = study::selected(limits, {.figure = "iteration_time"});
  REQUIRE(times.medians.size() == 1);
  CHECK(times.medians[0].group == "a group");
  CHECK(times.wrong_verdicts.value().empty());
  const Limits of_b = study::selected(limits, {.group = "b"});
  REQUIRE(of_b.medians.size() == 1);
  CHECK(of_b.medians[0].figure == "peak_used");
  REQUIRE(of_b.wrong_verdicts.value().size() == 1);
  CHECK(of_b.wrong_verdicts.value()[0].value == 2);
  const Limits fits = study::selected(limits, {.figure = "fits"});
  CHECK(fits.wrong_verdicts.value().size() == 2);
  CHECK(fits.medians.empty());
  CHECK(!study::selected({}, {}).wrong_verdicts);
}

TEST_CASE("limits are read from a file, in which every key is known") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    folder.write("validate.json", text);
    return study::read_limits((folder.path() / "validate.json").string());
  };
  const Limits limits = read(R"({"median_error": {"some runs": {"peak_used": 0.08}},)"
                             R"( "wrong_verdicts": {"some runs": 1}})");
  REQUIRE(limits.medians.size() == 1);
  CHECK(limits.medians[0].group == "some runs");
  CHECK(limits.medians[0].figure == "peak_used");
  CHECK(limits.medians[0].value == 0.08);
  REQUIRE(limits.wrong_verdicts.value().size() == 1);
  CHECK(limits.wrong_verdicts.value()[0].group == "some runs");
  CHECK(limits.wrong_verdicts.value()[0].value == 1);
  CHECK(read("{}").wrong_verdicts.has_value() == false);
  CHECK_THROWS_AS(read(R"({"wrong_verdicts": 1})"), InputError);
  CHECK_THROWS_AS(read(R"({"wrong_verdicts": {"some runs": 0.5}})"), InputError);
  CHECK_THROWS_AS(read(R"({"median_error": {"some runs": {"peak_use": 0.08}}})"), InputError);
  CHECK_THROWS_AS(read(R"({"median_errors": {}})"), InputError);
}

// In the small scenario "alone" is the baseline: its speedup is 1, so that a figure relative to it
// can be predicted.
TEST_CASE("runs played on two threads come to what they come to alone, and only those measured") {
  const TemporaryFolder folder;
  const std::string measured =
      R"("name": "four", "measured": {"speedup": {"value": 2, "provenance": "published",)"
      R"( "source": "x"}},)";
  folder.write("a.json", with(small_scenario(), "\"name\": \"four\",", measured));
  const std::string file = (folder.path() / "a.json").string();
  const auto status = [](const study::Played& one, std::size_t run) {
    return one.results.at(run).outcome.status;
  };
  const auto times = [&](int threads) {
    const auto both = study::play({study::read_scenario(file), study::read_scenario(file)},
                                  {.figure = "speedup"}, threads);
    std::vector<double> found;
    for (const study::Played& one : both) {
      for (std::size_t run = 0; run < 2;
           ++run) {  // the baseline, which nobody measured, and "four"
        REQUIRE(status(one, run) == Outcome::Status::ok);
        found.push_back(one.results[run].outcome.metrics.value().iteration_time.value);
      }
    }
    return found;
  };
  const std::vector<double> alone = times(1);
  REQUIRE(alone.size() == 4);
  CHECK(alone[0] > alone[1]);  // one GPU takes longer than four
  CHECK(times(2) == alone);
  const auto none = study::play({study::read_scenario(file)}, {.figure = "peak_used"}, 2);
  for (std::size_t run = 0; run < 2; ++run) {
    CHECK(status(none[0], run) == Outcome::Status::not_asked);
    CHECK(!none[0].results[run].outcome.metrics);
  }
}

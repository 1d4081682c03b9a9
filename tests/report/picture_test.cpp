// What a page draws of a run, against the schedule and the metrics of the run.
#include "report/html/picture.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/json_reader.hpp"
#include "sim/metrics.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::report {
namespace {

struct Drawn {
  study::Simulated simulated;
  JsonReader json;
};

Drawn drawn(const std::string& strategy, int gpus) {
  const TemporaryFolder folder;
  folder.write("a.json", with(small_scenario(), R"("runs": [)",
                              R"("runs": [{"name": "drawn", "cluster": {"gpus": )" +
                                  std::to_string(gpus) + R"(}, "strategy": )" + strategy + "},"));
  const study::Run run = study::read_scenario((folder.path() / "a.json").string()).runs.front();
  study::Simulated simulated = study::simulate(run, {.repeats = sim::Repeats::simulated});
  const std::string text = picture(run, simulated).text();
  return {std::move(simulated), JsonReader::from_text(text, "picture")};
}

struct Bar {
  std::int64_t kind, stage, micro_batch, begin, length;
};

std::vector<Bar> bars_of(const JsonReader& device) {
  std::vector<std::int64_t> numbers;
  for (const JsonReader& one : device.at("bars").elements()) numbers.push_back(one.whole_number());
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < numbers.size(); i += 5)
    bars.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3], numbers[i + 4]});
  return bars;
}

constexpr std::int64_t period = 10'000'000;  // ticks

/// The micro-batches that the bars of a kind are of. One that the period cuts comes twice, in parts
/// that are no longer than another one.
std::set<std::int64_t> micro_batches_of(const std::vector<Bar>& bars, int kind) {
  std::map<std::int64_t, std::int64_t> lengths;
  std::int64_t longest = 0;
  for (const Bar& bar : bars) {
    if (bar.kind != kind) continue;
    lengths[bar.micro_batch] += bar.length;
    longest = std::max(longest, bar.length);
  }
  std::set<std::int64_t> found;
  for (const auto& [micro_batch, length] : lengths) {
    CHECK(static_cast<double>(length) <= 1.001 * static_cast<double>(longest) + 4);
    found.insert(micro_batch);
  }
  return found;
}

TEST_CASE("a picture has a bar for each cell, one after the other, in a whole period") {
  const auto [strategy, kinds, micro_batches] = GENERATE(
      std::tuple(R"({"pipeline": 2})", 2, 4), std::tuple(R"({"pipeline": 2, "data": 2})", 2, 2),
      std::tuple(R"({"pipeline": 2, "schedule": "zb-h1"})", 3, 4));
  CAPTURE(strategy);
  const Drawn picture = drawn(strategy, micro_batches == 2 ? 4 : 2);
  const std::vector<JsonReader> devices = picture.json.at("devices").elements();
  REQUIRE(devices.size() == 2);
  for (std::size_t stage = 0; stage < devices.size(); ++stage) {
    const std::vector<Bar> bars = bars_of(devices[stage]);
    std::int64_t end = 0, busy = 0;
    for (const Bar& bar : bars) {
      CHECK(bar.stage == static_cast<std::int64_t>(stage));
      CHECK(bar.begin + 1 >= end);  // each is rounded
      end = bar.begin + bar.length;
      busy += bar.length;
    }
    CHECK(end <= period);
    // On the mean device as much is idle as the metrics say, or is communication.
    CHECK(busy <= period);
    std::set<std::int64_t> all;
    for (int one = 0; one < micro_batches; ++one) all.insert(one);
    for (int kind = 0; kind < kinds; ++kind) CHECK(micro_batches_of(bars, kind) == all);
    if (kinds == 2) CHECK(micro_batches_of(bars, 2).empty());
    CHECK(micro_batches_of(bars, 3).size() == 1);
  }
}

TEST_CASE("without a flush a period has no bubbles that the run does not have") {
  const Drawn picture = drawn(R"({"pipeline": 2, "schedule": "pipedream-2bw"})", 2);
  double busy = 0;
  for (const JsonReader& device : picture.json.at("devices").elements()) {
    for (const Bar& bar : bars_of(device)) busy += static_cast<double>(bar.length) / period / 2;
  }
  const sim::Metrics& metrics = *picture.simulated.outcome.metrics;
  // Cells hold what they wait for, so bars are busy at least as long as devices are.
  CHECK(busy >= 1 - metrics.bubble_fraction - 0.001);
  CHECK(busy <= 1.001);
}

TEST_CASE("steps of the optimizer are no longer than they take, wherever cells come between") {
  const Drawn picture = drawn(R"({"pipeline": 2, "embedding": "all", "head": "all"})", 2);
  std::int64_t longest = 0;
  for (const JsonReader& device : picture.json.at("devices").elements()) {
    for (const Bar& bar : bars_of(device)) {
      if (bar.kind == 3) longest = std::max(longest, bar.length);
    }
  }
  const double tick = picture.json.at("tick_s").number();
  CHECK(static_cast<double>(longest) * tick < 1.5 * picture.json.at("optimizer_s").number());
}

TEST_CASE("a picture's memory has the peak of the run") {
  const Drawn picture = drawn(R"({"pipeline": 2})", 2);
  double most = 0;
  for (const JsonReader& device : picture.json.at("devices").elements()) {
    for (const JsonReader& instant : device.at("memory").at("bytes").elements()) {
      double sum = 0;
      for (const JsonReader& category : instant.elements()) sum += category.number();
      most = std::max(most, sum);
    }
  }
  CHECK(most == picture.simulated.outcome.metrics->peak.total.value);
}

TEST_CASE("an optimizer's time is the less, the more ranks share the step") {
  const std::string model = R"(, "model": {"hidden": 4096})";
  const double whole = drawn(R"({"data": 4})" + model, 4).json.at("optimizer_s").number();
  const double shared =
      drawn(R"({"data": 4, "zero": 1})" + model, 4).json.at("optimizer_s").number();
  CHECK(shared > whole / 4);  // launches are as many
  CHECK(shared < whole / 2);
  const Seconds iteration_time =
      drawn(R"({"data": 4})" + model, 4).simulated.outcome.metrics->iteration_time;
  CHECK(whole < iteration_time.value);
}

}  // namespace
}  // namespace stratagem::report

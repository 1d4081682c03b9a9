// What a page draws of a run, against the schedule and the metrics of the run.
#include "report/html/picture.hpp"

#include <algorithm>
#include <vector>

#include "base/json_reader.hpp"
#include "sim/metrics.hpp"
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

constexpr std::int64_t iteration = 10'000'000;  // ticks

TEST_CASE("a picture has a bar for each cell, one after the other on each device") {
  const auto [strategy, kinds, micro_batches] = GENERATE(
      std::tuple(R"({"pipeline": 2})", 2, 4), std::tuple(R"({"pipeline": 2, "data": 2})", 2, 2),
      std::tuple(R"({"pipeline": 2, "schedule": "zb-h1"})", 3, 4));
  CAPTURE(strategy);
  const Drawn picture = drawn(strategy, micro_batches == 2 ? 4 : 2);
  const std::vector<JsonReader> devices = picture.json.at("devices").elements();
  REQUIRE(devices.size() == 2);
  for (std::size_t stage = 0; stage < devices.size(); ++stage) {
    std::vector<std::vector<std::int64_t>> micro(4);
    std::int64_t end = 0, busy = 0;
    for (const Bar& bar : bars_of(devices[stage])) {
      CHECK(bar.stage == static_cast<std::int64_t>(stage));
      CHECK(bar.begin + 1 >= end);  // each is rounded
      micro[bar.kind].push_back(bar.micro_batch);
      end = bar.begin + bar.length;
      busy += bar.length;
    }
    CHECK(busy <= iteration + 20);
    for (int kind = 0; kind < kinds; ++kind) {
      std::ranges::sort(micro[kind]);
      CHECK(micro[kind] == (micro_batches == 4 ? std::vector<std::int64_t>{0, 1, 2, 3}
                                               : std::vector<std::int64_t>{0, 1}));
    }
    if (kinds == 2) CHECK(micro[2].empty());
    CHECK(micro[3].size() == 1);
  }
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

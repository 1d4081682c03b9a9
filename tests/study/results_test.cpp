// Figures relative to a baseline, their errors, and what breaks an expectation.
#include "study/results.hpp"

#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"
#include "topology/presets.hpp"

using namespace stratagem;
using study::Figure;
using study::Outcome;

namespace {

study::Run run_named(const std::string& name, int global_batch) {
  // Neither graph nor cluster matter here; a reader and a cluster have to be there.
  const topology::Cluster& (*none)() = []() -> const topology::Cluster& {
    static const topology::Cluster cluster = topology::presets().front().build(1);
    return cluster;
  };
  return {.origin = {.file = "a.json", .path = "/runs/1", .files = {}},
          .name = name,
          .compared = {.baseline = "one"},
          .graph = {},
          .cluster = none(),
          .profile = {},
          .stack = {},
          .options = {},
          .strategy = JsonReader::from_text("{}", "a.json"),
          .batch = {.global = global_batch}};
}

/// A run on so many GPUs that takes `seconds` for 10 TFLOP of the model and 13 of the hardware per
/// GPU.
Outcome outcome(int gpus, Seconds seconds) {
  sim::Metrics metrics;
  metrics.iteration_time = seconds;
  metrics.hardware_flops = gpus * 13_TFLOP;
  return {.gpus = gpus, .metrics = metrics, .model_flops = gpus * 10_TFLOP};
}

double predicted(const study::Result& result, const std::string& name) {
  return std::ranges::find(result.figures, name, &Figure::name)->predicted.value();
}

}  // namespace

TEST_CASE("efficiency compares model FLOP/s per GPU, speed-up compares samples per second") {
  study::Scenario scenario{
      .file = "a.json", .question = "?", .runs = {run_named("one", 8), run_named("four", 32)}};
  const auto results = study::compare(scenario, {outcome(1, 1_s), outcome(4, 2_s)});
  CHECK(predicted(results[1], "iteration_time") == 2);
  CHECK(predicted(results[1], "tflops_per_gpu") == 6.5);  // 13 TFLOP in 2 s, recomputation counted
  CHECK(predicted(results[1], "scaling_efficiency") == 0.5);  // 5 of 10 TFLOP/s
  CHECK(predicted(results[1], "speedup") == 2);               // 32 / 2 s over 8 / 1 s
  CHECK(predicted(results[0], "scaling_efficiency") == 1);
}

TEST_CASE("a run without a baseline has no efficiency, and one that was refused no figures") {
  study::Scenario scenario{
      .file = "a.json", .question = "?", .runs = {run_named("one", 8), run_named("four", 32)}};
  scenario.runs[0].compared.baseline = "";
  const auto results = study::compare(
      scenario, {outcome(1, 1_s), {.status = Outcome::Status::refused, .reason = "no", .gpus = 4}});
  CHECK(!std::ranges::find(results[0].figures, "speedup", &Figure::name)->predicted);
  for (const Figure& figure : results[1].figures) CHECK(!figure.predicted);
}

TEST_CASE("errors are differences of efficiencies, and relative for all else") {
  CHECK(close(Figure{.name = "scaling_efficiency", .predicted = 0.8, .measured = 0.75}.error(),
              0.05, 1e-12));
  CHECK(close(Figure{.name = "iteration_time", .predicted = 3, .measured = 2}.error(), 0.5, 1e-12));
}

TEST_CASE("figures of memory are those of the outcome, also where it does not fit") {
  study::Scenario scenario{
      .file = "a.json", .question = "?", .runs = {run_named("one", 8), run_named("large", 8)}};
  scenario.runs[1].compared.measured = {
      {.name = "peak_reserved", .value = 40e9, .source = "somebody"},
      {.name = "fits", .value = 1, .source = "somebody"},
  };
  scenario.runs[1].compared.expect = {
      {.name = "peak_used", .at_least = 0, .at_most = 47e9, .because = "broken"}};
  Outcome large = outcome(1, 1_s);
  large.status = Outcome::Status::out_of_memory;
  large.memory = {.resident = 9_GB, .allocated = 44_GB, .reserved = 46_GB, .used = 48_GB};
  const auto results = study::compare(scenario, {outcome(1, 1_s), large});
  CHECK(predicted(results[1], "resident") == 9e9);
  CHECK(predicted(results[1], "peak_allocated") == 44e9);
  CHECK(predicted(results[1], "peak_used") == 48e9);
  CHECK(predicted(results[0], "fits") == 1);
  CHECK(predicted(results[1], "fits") == 0);
  const auto error = [&](const std::string& name) {
    return std::ranges::find(results[1].figures, name, &Figure::name)->error();
  };
  CHECK(close(error("peak_reserved"), 0.15, 1e-12));  // 46 of 40
  CHECK(error("fits") == -1);                         // somebody ran it
  CHECK(study::failures(results) ==
        std::vector<std::string>{"a.json: /runs/1/expect/peak_used: expected 0 to 4.7e+10, "
                                 "predicted 4.8e+10 (large: broken)"});
}

TEST_CASE("a peak that was read off one device is held to that device's") {
  study::Scenario scenario{.file = "a.json", .question = "?", .runs = {run_named("one", 8)}};
  Outcome uneven = outcome(4, 1_s);
  uneven.memory = {.allocated = 5_GB, .reserved = 7_GB, .used = 9_GB};
  uneven.devices = {
      {.device = 0, .count = 2, .allocated = 3_GB, .reserved = 4_GB, .context = 1_GB},
      {.device = 2, .count = 2, .allocated = 5_GB, .reserved = 7_GB, .context = 2_GB}};
  const auto peak_on = [&](std::optional<int> device) {
    scenario.runs[0].compared.measured = {
        {.name = "peak_used", .value = 5e9, .source = "somebody", .device = device}};
    return predicted(study::compare(scenario, {uneven})[0], "peak_used");
  };
  CHECK(peak_on(std::nullopt) == 9e9);
  CHECK(peak_on(0) == 5e9);
  CHECK(peak_on(2) == 9e9);
  CHECK_THROWS_WITH(peak_on(1), ContainsSubstring("/runs/1/measured/peak_used/device: expected the "
                                                  "first of devices that are alike"));
}

TEST_CASE("an expectation that is not met is one line with file, path, bounds and reason") {
  study::Scenario scenario{.file = "a.json", .question = "?", .runs = {run_named("one", 8)}};
  scenario.runs[0].compared.expect = {
      {.name = "iteration_time", .at_least = 0.5, .at_most = 1.5, .because = "kept"},
      {.name = "iteration_time", .at_least = -1e300, .at_most = 0.5, .because = "broken above"},
      {.name = "speedup", .at_least = 2, .at_most = 3, .because = "broken below"},
      {.name = "fits", .at_least = 0, .at_most = 0, .because = "broken too"},
  };
  const auto results = study::compare(scenario, {outcome(1, 1_s)});
  CHECK(study::failures(results) ==
        std::vector<std::string>{
            "a.json: /runs/1/expect/iteration_time: expected at most 0.5, predicted 1 (one: broken "
            "above)",
            "a.json: /runs/1/expect/speedup: expected 2 to 3, predicted 1 (one: broken below)",
            "a.json: /runs/1/expect/fits: expected not to fit, but it does (one: broken too)"});
}

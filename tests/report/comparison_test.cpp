// Two traces of one run, held to each other.
#include "report/traces/comparison.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

report::TracedTask task(const std::string& name, const std::string& kind, const std::string& stream,
                        double begin, double duration) {
  return {.name = name,
          .block = "B",
          .cell = "F0",
          .kind = kind,
          .stream = stream,
          .begin = begin,
          .duration = duration};
}

report::Trace trace(std::vector<report::TracedTask> tasks, double iteration, double peak) {
  return {.file = "one.json",
          .of = {.run = "r", .iteration = Seconds{iteration}, .peaks = {Bytes{peak}}},
          .devices = {std::move(tasks)},
          .process_of_device = {0}};
}

}  // namespace

TEST_CASE("times are summed up by kind and by task, and errors are of what was measured") {
  const report::Trace predicted =
      trace({task("a", "gemm", "compute", 0, 2), task("a", "gemm", "compute", 2, 2),
             task("b", "norm", "compute", 4, 1)},
            5, 100);
  const report::Trace measured =
      trace({task("a", "gemm", "compute", 0, 4), task("a", "gemm", "compute", 4, 4),
             task("b", "norm", "compute", 8, 1)},
            9, 101);
  report::Trace stranger = measured;
  stranger.of.run = "another";
  CHECK_THROWS_AS(report::compare(predicted, stranger), InputError);
  const report::Comparison comparison = report::compare(predicted, measured);
  REQUIRE(comparison.kinds.size() == 2);
  CHECK(comparison.kinds[0].name == "gemm");
  CHECK(comparison.kinds[0].tasks == 2);
  CHECK(comparison.kinds[0].predicted == 4_s);
  CHECK(comparison.kinds[0].measured == 8_s);
  CHECK(comparison.worst[0].name == "a in B");
  CHECK(comparison.measured_peak - comparison.predicted_peak == 1_B);
  const JsonReader json = JsonReader::from_text(report::to_json(comparison).text(), "c.json");
  CHECK(json.at("kinds").elements()[0].at("error").number() == -0.5);
  CHECK(json.at("iteration").at("error").number() == Approx(5.0 / 9 - 1));
}

TEST_CASE("what a stream does beside computations is told apart") {
  // 0..4 and 6..8 are computed; 3..7 is communicated: 1 + 1 of 4 beside.
  const std::vector<report::TracedTask> tasks = {task("a", "gemm", "compute", 0, 4),
                                                 task("r", "send", "send forward, group 1", 3, 4),
                                                 task("b", "gemm", "compute", 6, 2)};
  const report::Comparison comparison = report::compare(trace(tasks, 8, 0), trace(tasks, 8, 0));
  const auto sends =
      std::ranges::find(comparison.streams, "send forward", &report::ComparedStream::name);
  REQUIRE(sends != comparison.streams.end());
  CHECK(sends->measured == 4_s);
  CHECK(sends->measured_beside == 2_s);
}

TEST_CASE("traces of different programs are refused") {
  const report::Trace one = trace({task("a", "gemm", "compute", 0, 1)}, 1, 0);
  CHECK_THROWS_AS(report::compare(one, trace({}, 1, 0)), InputError);
  CHECK_THROWS_AS(report::compare(one, trace({task("b", "gemm", "compute", 0, 1)}, 1, 0)),
                  InputError);
  report::Trace two = one;
  two.devices.push_back(one.devices[0]);
  CHECK_THROWS_AS(report::compare(one, two), InputError);
}

TEST_CASE("a trace reads back as what was simulated, and an overlay has both of every device") {
  const TemporaryFolder folder;
  folder.write("a.json", with(small_scenario(), "\n  ]",
                              R"(, {"name": "fourfold", "cluster": {"gpus": 4},
                                   "strategy": {"pipeline": 2, "data": 2}} ])"));
  const study::Scenario scenario = study::read_scenario((folder.path() / "a.json").string());
  const auto run = std::ranges::find(scenario.runs, "fourfold", &study::Run::name);
  const study::Simulated simulated = study::simulate(*run, {});
  const auto written = [&](const study::Simulated& of, const std::string& file) {
    folder.write(file, report::chrome_trace(of.program, of.timeline, report::trace_of("four", of)));
    return report::read_trace((folder.path() / file).string());
  };
  const report::Trace folded = written(simulated, "folded.json");
  const report::Trace unfolded = written(study::simulate(*run, {.folded = false}), "all.json");
  CHECK(simulated.timeline.actors.size() == 2);
  REQUIRE(folded.devices.size() == 4);
  const report::Comparison same = report::compare(folded, unfolded);
  double predicted = 0;
  for (const report::ComparedTime& kind : same.kinds) {
    CHECK(kind.predicted.value == Approx(kind.measured.value));
    predicted += kind.predicted.value;
  }
  CHECK(predicted > 0);
  CHECK(same.predicted.iteration == same.measured.iteration);
  CHECK(same.predicted_peak == same.measured_peak);

  const JsonReader overlay = JsonReader::from_text(report::overlay(folded, unfolded), "o.json");
  int processes = 0;
  std::size_t slices = 0, tasks = 0;
  for (const JsonReader& event : overlay.at("traceEvents").elements()) {
    if (event.at("name").text() == "process_name") ++processes;
    if (event.at("ph").text() == "X") ++slices;
  }
  for (const auto& device : folded.devices) tasks += 2 * device.size();
  CHECK(processes == 8);
  CHECK(slices == tasks);

  folder.write("other.json", R"({"traceEvents": []})");
  CHECK_THROWS_AS(report::read_trace((folder.path() / "other.json").string()), InputError);
}

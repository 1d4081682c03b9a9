// Shapes of scenarios: which are measured, once each, and what becomes of them in a file.
#include "calibrate/measure/scenario_experiments.hpp"

#include <algorithm>
#include <map>

#include "calibrate/measure/recorder.hpp"
#include "calibrate/measurements.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::calibrate {
namespace {

using cost::KernelKind;

cost::Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.kind = KernelKind::gemm, .m = m, .n = n, .k = k, .batch = 1};
}

std::vector<Experiment> experiments(const std::vector<cost::Kernel>& kernels) {
  return scenario_experiments({.name = "small", .kernels = kernels},
                              std::make_shared<Pool>(Bytes{}));
}

TEST_CASE("a product is measured the three ways round that layers have, once") {
  const auto all = experiments({product(64, 128, 32), product(64, 128, 32)});
  REQUIRE(all.size() == 3);
  std::vector<std::string> transposes;
  for (const Experiment& e : all) {
    CHECK(e.sizes == std::vector<std::int64_t>{64, 128, 32, 1});
    CHECK(e.scenario == "small");
    transposes.push_back(e.transposes);
    e.prepare()();
  }
  CHECK(transposes == std::vector<std::string>{"NT", "NN", "TN"});
}

TEST_CASE("kernels that move memory are measured by what one launch moves") {
  // 2 MB in two launches: every operation of the kind moves 1 MB, in rows of 1024.
  const cost::Kernel norm{.kind = KernelKind::norm, .traffic = 2_MB, .launches = 2};
  std::map<std::string, Experiment> by_operation;
  for (const Experiment& e : experiments({norm})) by_operation[e.operation] = e;
  CHECK(by_operation.size() == 2);  // forward and gradient
  for (const auto& [operation, e] : by_operation) {
    CAPTURE(operation);
    CHECK(e.kind == "norm");
    CHECK(e.sizes[1] == 1024);
    CHECK(close(e.bytes, 1_MB, 0.01));
  }
  // A kernel that tells its pass asks for that one only.
  cost::Kernel gradient = norm;
  gradient.pass = cost::KernelPass::gradient;
  for (const Experiment& e : experiments({gradient})) CHECK(e.operation.ends_with("gradient"));
}

TEST_CASE("sizes within a tenth of each other are one, others are not") {
  const auto add = [](Bytes bytes) {
    return cost::Kernel{.kind = KernelKind::elementwise, .traffic = bytes};
  };
  CHECK(experiments({add(1_MB), add(1.05_MB), add(3_MB)}).size() == 2);
  CHECK(experiments({add(1_MB), add(1.05_MB), add(1.2_MB)}).size() == 2);
}

TEST_CASE("what is no kernel of a processor, or moves nothing, is left out") {
  CHECK(experiments({{.kind = KernelKind::host_copy, .traffic = 1_MB},
                     {.kind = KernelKind::host_optimizer, .traffic = 1_MB},
                     {.kind = KernelKind::attention, .traffic = 1_MB},
                     {.kind = KernelKind::elementwise, .launches = 0}})
            .empty());
}

TEST_CASE(
    "rows of a scenario stand in tables of their own, are one family, and are not done again") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.json").string();
  const Machine machine{.host = "here", .processor = "a processor", .memory = 8_GB};
  const auto shapes = experiments({product(64, 128, 32), product(32, 16, 8)});
  Experiment of_sweep = shapes.front();
  of_sweep.scenario = "";
  of_sweep.sizes = {100, 100, 100, 1};
  {
    Recorder recorder(file, machine);
    recorder.set({.fp32 = FlopsPerSecond{50e9}, .memory = BytesPerSecond{10e9}, .pace = 1_ms});
    const Timed timed{.median = 1_ms, .spread = 0.01, .repeats = 7, .pace = 1_ms};
    recorder.add(of_sweep, timed);
    for (const Experiment& e : shapes) recorder.add(e, timed);
  }
  const Recorder again(file, machine);
  for (const Experiment& e : shapes) CHECK(again.has(e));
  Experiment elsewhere = shapes.front();
  elsewhere.scenario = "another";
  CHECK(again.has(elsewhere));
  const Measurements read = read_measurements(file);
  REQUIRE(read.gemms.size() == 2);
  CHECK(read.gemms[0].points.front().family != "scenario small");
  REQUIRE(read.gemms[1].points.size() == 6);
  for (const GemmPoint& point : read.gemms[1].points) CHECK(point.family == "scenario small");
}

}  // namespace
}  // namespace stratagem::calibrate

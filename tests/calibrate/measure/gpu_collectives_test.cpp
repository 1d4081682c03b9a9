// Collectives of GPUs as they are measured and fitted: times of a formula stand in for a GPU's.
#include "calibrate/measure/gpu_collectives.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "calibrate/fit/nccl.hpp"
#include "calibrate/fit/nccl_others.hpp"
#include "tests/catch.hpp"

using namespace stratagem;
using namespace stratagem::calibrate;

namespace {

TEST_CASE(
    "every grouping of GPUs has all its groups at work, and neighbours the first alone, too") {
  for (const int ranks : {2, 3, 7, 8}) {
    std::set<int> alone;
    for (const GpuGroups& groups : gpu_groups(Sweep::full, ranks)) {
      std::set<std::vector<int>> at_work;
      for (int rank = 0; rank < ranks; ++rank)
        if (const auto members = group_of(groups, rank, ranks); !members.empty())
          at_work.insert(members);
      CHECK(at_work.size() == static_cast<std::size_t>(groups.groups));
      if (groups.groups > 1) continue;
      CHECK(groups.grouping.stride == 1);
      CHECK(alone.insert(groups.grouping.size).second);  // once
      CHECK(at_work.begin()->front() == 0);
    }
    CHECK(alone.size() == static_cast<std::size_t>(ranks - 1));
  }
  CHECK(group_of({.grouping = {.size = 2, .stride = 1}, .groups = 1}, 2, 4).empty());
  CHECK(group_of({.grouping = {.size = 2, .stride = 1}, .groups = 2}, 2, 4) == std::vector{2, 3});
}

TEST_CASE("all collectives are measured from 1 KiB to 1 GiB") {
  std::map<std::string, std::set<std::int64_t>> sizes;
  for (const GpuCollective& each : gpu_collectives({.grouping = {.size = 4}, .groups = 1}))
    sizes[experiment_of(each).kind].insert(each.size);
  CHECK(sizes.size() == 7);
  for (const auto& [kind, of_kind] : sizes) {
    CAPTURE(kind);
    CHECK(of_kind.size() == 21);
    CHECK(*of_kind.begin() == 1024);
    CHECK(*of_kind.rbegin() == largest_gpu_collective);
  }
  CHECK(experiment_of({.groups = {.grouping = {.size = 4, .stride = 2}, .groups = 2}, .size = 4096})
            .name() == "nccl_all_reduce 4 x 2 x 2 x 4096");
}

constexpr const char* cluster = "dgx-a100";

/// What stands in for measuring: NCCL's own prediction with these constants, for groups alone;
/// others three times as long.
cost::NcclConstants planted_constants() {
  cost::NcclConstants constants;
  constants.added.value = 20_us;
  constants.latency_factor.value = 1.2;
  constants.bandwidth_factor.value = 1.1;
  constants.copy.value = BytesPerSecond{700e9};
  return constants;
}

std::vector<Json> measured_by_formula(int ranks) {
  GpuCollectiveTables tables(cluster, "2.28.9");
  NcclPredictor predictor({.cluster = cluster, .version = "2.28.9"});
  for (const GpuGroups& groups : gpu_groups(Sweep::quick, ranks)) {
    for (const GpuCollective& each : gpu_collectives(groups)) {
      const NcclPoint point{.ranks = groups.grouping.size,
                            .size = Bytes{static_cast<double>(each.size)}};
      const Seconds time = predictor.predict(point, planted_constants());
      tables.add(each, {.median = groups.groups == 1 ? time : 3 * time, .repeats = 7});
    }
  }
  return tables.json();
}

Json file_of(const std::vector<Json>& tables, int ranks, int servers) {
  Json list = Json::array();
  for (const Json& table : tables) list.push(table);
  Json device = Json::object();
  device.set("gpu", "A100")
      .set("architecture", "ampere")
      .set("multiprocessors", 108)
      .set("peak", Json::object().set("fp16", "312 TFLOP/s"))
      .set("memory_bandwidth", "2039 GB/s");
  return Json::object()
      .set("schema", 1)
      .set("device", device)
      .set("ranks", ranks)
      .set("servers", servers)
      .set("source", "stratagem calibrate measure --backend cuda")
      .set("status", "measured")
      .set("tables", list);
}

Measurements read(const Json& file) {
  return read_measurements(JsonReader::from_text(file.text(), "mine.json"), "mine.json");
}

TEST_CASE("what is written is read: groups of the first GPUs alone, with their version of NCCL") {
  const Measurements read_back = read(file_of(measured_by_formula(8), 8, 1));
  REQUIRE(read_back.nccl_all_reduces.size() == 1);
  CHECK(read_back.nccl_others.size() == 6);
  const NcclTable& table = read_back.nccl_all_reduces.front();
  CHECK(table.version == "2.28.9");
  CHECK(table.cluster == cluster);
  CHECK(table.fitted_ranks == std::vector{2, 4, 8});
  CHECK(table.points.size() == 3 * 21);  // without groups that worked beside others
  CHECK(close(table.points.front().time,
              NcclPredictor(table).predict(table.points.front(), planted_constants()), 1e-9));
  for (const NcclTable& other : read_back.nccl_others) CHECK_FALSE(describe_others(other).empty());
}

TEST_CASE("constants come back from the times that they made, and say on what they rest") {
  std::vector<Measurements> measurements;
  const Datasheet sheet = read_datasheet("scenarios/datasheets/a100-sxm4-80gb.json");
  for (const std::string& file : sheet.measurements) {
    Measurements other = read_measurements(file);
    other.nccl_all_reduces.clear();  // those of this GPU alone
    measurements.push_back(std::move(other));
  }
  measurements.push_back(read(file_of(measured_by_formula(8), 8, 1)));
  const Fit fit = fit_profile(measurements, sheet);
  REQUIRE(fit.profile.collective.nccl);
  const cost::NcclConstants& nccl = *fit.profile.collective.nccl;
  CHECK(close(nccl.added.value, 20_us, 0.02));
  CHECK(close(nccl.latency_factor.value, 1.2, 0.02));
  // 1.1 times the 20 of 25 GB/s that NCCL's search takes a cable for.
  const double share = fit.profile.collective.nvlink_efficiency.value * nccl.bandwidth_factor.value;
  CHECK(close(share, 1.1 * 20 / 25, 0.02));
  CHECK(close(nccl.copy.value, BytesPerSecond{700e9}, 0.02));
  CHECK(nccl.added.provenance == cost::Provenance::fitted);
  CHECK_THAT(nccl.added.source, ContainsSubstring("63 all-reduce times") &&
                                    ContainsSubstring("calibrate measure --backend cuda") &&
                                    ContainsSubstring("NCCL 2.28.9"));
  CHECK(fit.profile.evidence.at("nccl all_reduce").size.least == 1024);
  CHECK(fit.profile.evidence.at("nccl all_reduce").ranks->most == 8);
  CHECK(fit.profile.busy_ranks.empty());  // a GPU's memory is its own
}

TEST_CASE("two GPUs are fitted, though link and copy cannot be told apart on one number of GPUs") {
  const Measurements two = read(file_of(measured_by_formula(2), 2, 1));
  const NcclTable& table = two.nccl_all_reduces.front();
  CHECK(table.points.size() == 21);
  const NcclFit fit = fit_nccl(table);
  CHECK(fit.estimate.median_error < 0.02);
  const NcclErrors errors = judge_nccl(table, fit.constants).at(2);
  CHECK(errors.points == 21);
  CHECK(errors.worst < 0.1);
}

TEST_CASE("groups that reach beyond a server are recorded, and nothing is fitted to them") {
  const std::vector<Json> tables = measured_by_formula(8);
  const Measurements two = read(file_of(tables, 8, 2));  // four GPUs each
  REQUIRE(two.nccl_all_reduces.size() == 1);
  for (const NcclPoint& point : two.nccl_all_reduces.front().points) CHECK(point.ranks <= 4);
  // Three servers of 8 ranks: nobody knows which have two and which three.
  CHECK(read(file_of(tables, 8, 3)).nccl_all_reduces.empty());
  CHECK_THROWS_WITH(read(file_of(tables, 4, 1)),
                    ContainsSubstring("a group among 4 ranks") && ContainsSubstring("rows"));
}

TEST_CASE("more GPUs than a server of the preset has are refused") {
  NcclPredictor predictor({.cluster = cluster, .version = "2.28.9"});
  CHECK_THROWS_WITH(predictor.predict({.ranks = 9, .size = 1_MiB}, std::nullopt),
                    ContainsSubstring("at most the 8 GPUs"));
}

}  // namespace

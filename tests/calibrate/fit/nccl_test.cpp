// NCCL's model with four fitted constants per type of GPU, against 14,336 measured all-reduces.
#include "calibrate/fit/nccl.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::calibrate {
namespace {

NcclTable table_of(const std::string& name) {
  return read_measurements("scenarios/measurements/" + name + ".json").nccl_all_reduces.front();
}

/// With bandwidth_factor over the 20 of 25 GB/s that NCCL's search takes a cable for.
cost::NcclConstants shipped(const std::string& profile) {
  const auto collective = cost::read_profile("scenarios/profiles/" + profile + ".json").collective;
  cost::NcclConstants constants = *collective.nccl;
  constants.bandwidth_factor.value *= collective.nvlink_efficiency.value * 25 / 20;
  return constants;
}

TEST_CASE("all-reduces on 3, 5, 6 and 7 GPUs follow from those on 2, 4 and 8") {
  // The goal: a median of at most 6 % and no more than 25 % anywhere from 1 MiB to 1 GiB.
  for (const auto& [measured, profile] :
       {std::pair{"v100_sxm2_nccl", "v100-sxm2"}, std::pair{"a100_sxm_nccl", "a100-sxm4-80gb"}}) {
    INFO(measured);
    const NcclTable table = table_of(measured);
    CHECK(table.points.size() == 7 * 1024);
    CHECK(table.fitted_ranks == std::vector{2, 4, 8});
    const NcclErrors rest = judge_nccl(table, shipped(profile)).at(0);
    CHECK(rest.points == 4 * 11);
    CHECK(rest.median < 0.04);
    CHECK(rest.worst < 0.20);
  }
}

TEST_CASE("numbers of GPUs that were not fitted gain from the fitted constants by half at least") {
  for (const auto& [measured, profile] :
       {std::pair{"v100_sxm2_nccl", "v100-sxm2"}, std::pair{"a100_sxm_nccl", "a100-sxm4-80gb"}}) {
    const NcclErrors without = judge_nccl(table_of(measured), std::nullopt).at(0);
    const NcclErrors with = judge_nccl(table_of(measured), shipped(profile)).at(0);
    CHECK(with.median < 0.5 * without.median);
    CHECK(with.worst < without.worst);
  }
}

TEST_CASE("bus bandwidths of 2 to 8 GPUs of a DGX-1V at 1 GiB follow from the rings on its graph") {
  // Measured: 22.5, 45, 85, 37, 46, 87, 134 GB/s. Five GPUs have two rings that pass GPU 0 twice;
  // why they lose another 18 % is not known. That error is a limit, not what is right: it may fall.
  const NcclTable table = table_of("v100_sxm2_nccl");
  NcclPredictor predictor(table);
  for (const NcclPoint& point : table.points) {
    if (point.size != 1_GiB) continue;
    INFO(point.ranks << " GPUs");
    const double ratio = predictor.predict(point, shipped("v100-sxm2")) / point.time;
    CHECK(ratio < 1.055);
    CHECK(ratio > (point.ranks == 5 ? 0.8 : 0.945));
  }
}

TEST_CASE("all-reduces of another A100 server, measured by others, are predicted within 10 %") {
  // Vidur 7d47513, all-reduces of a100_dgx in a running framework, us at 1, 2, 4 ... 64 MiB. Below
  // 1 MiB they scatter between 10 and 62 us without order.
  const std::map<int, std::vector<double>> measured{{2, {47, 54, 63, 95, 139, 247, 430}},
                                                    {4, {64, 53, 85, 123, 200, 319, 603}},
                                                    {8, {64, 70, 99, 155, 274, 411, 675}}};
  NcclPredictor predictor(table_of("a100_sxm_nccl"));
  std::vector<double> errors;
  for (const auto& [ranks, times] : measured) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      const NcclPoint point{ranks, std::exp2(i) * 1_MiB, times[i] * 1_us};
      errors.push_back(
          std::abs(predictor.predict(point, shipped("a100-sxm4-80gb")) / point.time - 1));
    }
  }
  std::ranges::sort(errors);
  CHECK(errors[errors.size() / 2] < 0.10);
  CHECK(errors.back() < 0.26);
}

TEST_CASE("a file of all-reduces tells which line is wrong, and which GPU it lacks") {
  const std::string file = "scenarios/measurements/nccl_all_reduce_vtrain.csv";
  CHECK_THROWS_AS(read_all_reduce_csv(file, "h100"), InputError);
  CHECK_THROWS_AS(read_all_reduce_csv("scenarios/measurements/a100_sxm_nccl.json", "a100"),
                  InputError);
}

}  // namespace
}  // namespace stratagem::calibrate

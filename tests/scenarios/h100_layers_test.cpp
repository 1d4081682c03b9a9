// Kernels within whole layers on an H100, beside a profile that is fitted to none of them.
#include <cmath>
#include <string>
#include <vector>

#include "calibrate/measurements.hpp"
#include "cost/attention.hpp"
#include "cost/gemm.hpp"
#include "cost/profile.hpp"
#include "tests/catch.hpp"

namespace stratagem {
namespace {

const std::string records = "scenarios/records/h100_layers.json";
const std::string h100 = "scenarios/profiles/h100-sxm5.json";

double mean_size(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return sum / static_cast<double>(errors.size());
}

/// The relative errors of the predicted times of one implementation and pass.
std::vector<double> attention_errors(const cost::Profile& profile,
                                     const calibrate::AttentionTable& table) {
  std::vector<double> errors;
  const bool forward = table.kind == cost::KernelKind::attention;
  for (const calibrate::AttentionPoint& point : table.points) {
    const double share =
        cost::attention_share(profile.kernels.attention.at(table.implementation), forward,
                              point.size, point.sizes, profile.multiprocessors.value);
    const Seconds predicted = point.flops / (share * profile.peak.at("bf16").value);
    errors.push_back(predicted / point.time - 1);
  }
  return errors;
}

}  // namespace

TEST_CASE("products within layers take as long as the profile predicts") {
  const cost::Profile profile = cost::read_profile(h100);
  const auto measured = calibrate::read_measurements(records);
  REQUIRE(measured.gemms.size() == 1);
  std::vector<double> errors;
  for (const calibrate::GemmPoint& point : measured.gemms[0].points) {
    cost::Kernel kernel{.kind = cost::KernelKind::gemm, .type = model::DataType::bf16};
    kernel.m = point.m;
    kernel.n = point.n;
    kernel.k = point.k;
    kernel.batch = point.batch;
    const auto sizes =
        static_cast<double>(point.m * point.k + point.k * point.n + point.m * point.n);
    kernel.traffic = sizes * model::size_of(kernel.type);
    kernel.flops = Flops{2.0 * static_cast<double>(point.m) * static_cast<double>(point.n) *
                         static_cast<double>(point.k)};
    errors.push_back(cost::gemm_time(kernel, profile) / point.time - 1);
  }
  REQUIRE(errors.size() == 144);
  CHECK(mean_size(errors) < 0.05);
}

// Half of them have at most half as many blocks of queries as the tables that the profile is fitted
// to. With the same constants, but without the block that the fullest multiprocessor has more than
// the mean, the mean error of each table is 18 to 20 %.
TEST_CASE(
    "attention within layers, also of fewer heads than the fitted ones, takes as long as "
    "predicted") {
  const cost::Profile profile = cost::read_profile(h100);
  const auto measured = calibrate::read_measurements(records);
  REQUIRE(measured.attentions.size() == 4);
  for (const calibrate::AttentionTable& table : measured.attentions) {
    const std::vector<double> errors = attention_errors(profile, table);
    INFO(table.implementation << ", "
                              << (table.kind == cost::KernelKind::attention ? "forward"
                                                                            : "backward"));
    REQUIRE(errors.size() == 6);
    CHECK(mean_size(errors) < 0.07);
  }
}

}  // namespace stratagem

// Whole profiles from synthetic measurements: what was planted comes back, shares move along.
#include "calibrate/fit/fit.hpp"

#include "base/input_error.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "cost/gemm.hpp"
#include "tests/catch.hpp"

namespace stratagem::calibrate {
namespace {

Device imagined() {
  return {.gpu = "imagined",
          .architecture = "imaginary",
          .multiprocessors = 80,
          .peak = {{"fp16", 125_TFLOPps}},
          .memory_bandwidth = 900_GBps,
          .nvlink = 25_GBps};
}

/// GEMMs that take exactly as long as the formula says; every `wrong`-th takes three times that.
GemmTable planted_gemms(const cost::GemmConstants& constants, int wrong) {
  cost::Profile rates;
  rates.multiprocessors.value = imagined().multiprocessors;
  rates.peak["fp16"].value = imagined().peak.at("fp16");
  rates.memory.bandwidth.value = imagined().memory_bandwidth;
  GemmTable table;
  int count = 0;
  for (const std::int64_t m : {64, 512, 1024, 3000, 8192}) {
    for (const std::int64_t n : {64, 700, 4096, 7000}) {
      for (const std::int64_t k : {32, 128, 512, 2048, 9000}) {
        const auto product = [](std::int64_t a, std::int64_t b) {
          return static_cast<double>(a * b);
        };
        const cost::Kernel kernel{.kind = cost::KernelKind::gemm,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .batch = 1,
                                  .flops = {},
                                  .traffic = (product(m, k) + product(k, n) + product(m, n)) * 2_B};
        const bool right = wrong == 0 || ++count % wrong != 0;
        table.points.push_back(
            {.m = m,
             .n = n,
             .k = k,
             .transposes = "",
             .time = (right ? 1 : 3) * cost::gemm_time(kernel, constants, rates)});
      }
    }
  }
  return table;
}

cost::GemmConstants planted_constants() {
  return {.efficiency = {.value = 0.95, .source = {}},
          .half_intensity = {.value = 25, .source = {}},
          .ramp = {.value = 100, .source = {}},
          .streaming = {.value = 0.7, .source = {}},
          .fixed = {.value = 6_us, .source = {}}};
}

/// Everything that a profile is fitted from, with planted constants.
Measurements planted(int wrong = 0) {
  Measurements measurements;
  measurements.device = imagined();
  measurements.origin.source = "planted";
  measurements.origin.status = "published";
  measurements.gemms.push_back(planted_gemms(planted_constants(), wrong));
  StreamingTable add{
      .kind = "elementwise", .operation = "add", .timing = Timing::eager, .points = {}};
  for (double bytes = 1e5; bytes < 1e9; bytes *= 1.5) {
    // 90 % of 900 GB/s from 14.6 us after the first event on; the second event comes no earlier
    // than 32 us.
    add.points.push_back({Bytes{bytes}, std::max(32_us, 14.6_us + Bytes{bytes} / 810_GBps)});
  }
  measurements.streaming.push_back(add);
  AllReduceTable all_reduces;
  for (const int ranks : {2, 4, 8}) {
    for (const Bytes size : {1_MiB, 8_MiB, 64_MiB, 512_MiB}) {
      const int steps = 2 * (ranks - 1);
      all_reduces.points.push_back(
          {ranks, 6, size, 20_us + steps * 5_us + (1.0 * steps / ranks) * size / (6 * 22_GBps)});
    }
  }
  measurements.all_reduces.push_back(all_reduces);
  measurements.kernel_gaps = {2.6_us};
  return measurements;
}

Datasheet datasheet() {
  Datasheet datasheet;
  datasheet.file = "datasheet.json";
  datasheet.name = "imagined";
  datasheet.architecture = "imaginary";
  datasheet.multiprocessors.value = 80;
  datasheet.peak["fp16"].value = 250_TFLOPps;  // twice the GPU that was measured
  datasheet.memory.bandwidth.value = 1800_GBps;
  for (const char* kind : {"activation_function", "dropout", "softmax", "norm", "rms_norm",
                           "reduction", "embedding", "cross_entropy", "optimizer"}) {
    datasheet.like.streaming[kind] = {.as = "elementwise", .because = "not measured"};
  }
  return datasheet;
}

TEST_CASE("planted constants of every kind come back") {
  const cost::Profile profile = fit_profile({planted()}, datasheet()).profile;
  const cost::GemmConstants& gemm = profile.kernels.gemm.at("fp16");
  // Efficiency and half_intensity nearly make up for each other: their effect on large tiles is
  // what is known.
  const auto largest = [](const cost::GemmConstants& constants) {
    return constants.efficiency.value * 85.3 / (85.3 + constants.half_intensity.value);
  };
  CHECK(close(largest(gemm), largest(planted_constants()), 0.01));
  CHECK(close(gemm.efficiency.value, 0.95, 0.03));
  CHECK(close(gemm.half_intensity.value, 25, 0.15));
  CHECK(close(gemm.ramp.value, 100, 0.10));
  CHECK(close(gemm.streaming.value, 0.7, 0.03));
  CHECK(close(gemm.fixed.value, 6_us, 0.03));
  CHECK(gemm.efficiency.error < 0.01);
  CHECK(gemm.efficiency.provenance == cost::Provenance::fitted);

  CHECK(close(profile.kernels.streaming.at("elementwise").value, 0.9, 0.01));
  CHECK(close(profile.launch.value, 32_us, 0.03));  // the host's time from one event to the next
  CHECK(profile.kernels.floor.value == 2.6_us);
  CHECK(close(profile.collective.nvlink_efficiency.value, 0.88, 0.01));
  CHECK(close(profile.collective.base.value, 20_us, 0.05));
  CHECK(close(profile.collective.node_step.value, 5_us, 0.03));
}

TEST_CASE("planted GEMM constants come back although every tenth time is three times too long") {
  const Fit fit = fit_profile({planted(10)}, datasheet());
  const cost::GemmConstants& gemm = fit.profile.kernels.gemm.at("fp16");
  CHECK(close(gemm.efficiency.value / (1 + gemm.half_intensity.value / 85.3),
              0.95 / (1 + 25 / 85.3), 0.03));
  CHECK(close(gemm.streaming.value, 0.7, 0.08));
  CHECK(close(gemm.fixed.value, 6_us, 0.10));
  CHECK(fit.qualities.front().what == "gemm fp16");
  CHECK(fit.qualities.front().median_error < 0.03);
}

TEST_CASE("rates come from the datasheet, shares from the GPU that was measured") {
  const cost::Profile profile = fit_profile({planted()}, datasheet()).profile;
  CHECK(profile.peak.at("fp16").value == 250_TFLOPps);
  CHECK(profile.memory.bandwidth.value == 1800_GBps);
}

TEST_CASE(
    "measurements of another architecture only serve where there are none of this one, and are "
    "assumed") {
  Measurements foreign = planted();
  foreign.device.architecture = "foreign";
  const cost::Profile alone = fit_profile({foreign}, datasheet()).profile;
  CHECK(alone.kernels.gemm.at("fp16").fixed.provenance == cost::Provenance::assumed);
  CHECK(alone.kernels.floor.provenance == cost::Provenance::assumed);
  CHECK(alone.launch.provenance == cost::Provenance::assumed);

  for (GemmPoint& point : foreign.gemms[0].points) point.time = 10 * point.time;
  const cost::Profile both = fit_profile({foreign, planted()}, datasheet()).profile;
  CHECK(both.kernels.gemm.at("fp16").fixed.provenance == cost::Provenance::fitted);
  CHECK(close(both.kernels.gemm.at("fp16").fixed.value, 6_us, 0.03));
}

TEST_CASE("what nobody measured is as strong as what it is alike, at most") {
  Datasheet sheet = datasheet();
  sheet.peak["bf16"].value = 250_TFLOPps;
  sheet.like.gemm["bf16"] = {
      .as = "fp16", .provenance = cost::Provenance::fitted, .because = "same tensor cores"};
  const cost::Profile profile = fit_profile({planted()}, sheet).profile;
  CHECK(profile.kernels.streaming.at("dropout").value ==
        profile.kernels.streaming.at("elementwise").value);
  CHECK(profile.kernels.streaming.at("dropout").provenance == cost::Provenance::assumed);
  CHECK(profile.kernels.gemm.at("bf16").ramp.value == profile.kernels.gemm.at("fp16").ramp.value);
  CHECK(profile.kernels.gemm.at("bf16").ramp.provenance == cost::Provenance::fitted);
}

TEST_CASE("what takes longer than what it is like reaches a smaller share") {
  Datasheet sheet = datasheet();
  sheet.peak["tf32"].value = sheet.peak.at("fp16").value;
  sheet.like.gemm["tf32"] = {.as = "fp16", .because = "layers", .times_as_long = 2};
  sheet.like.streaming["dropout"].times_as_long = 4;
  sheet.speed_spread = cost::Constant<double>{.value = 0.02};
  const cost::Profile profile = fit_profile({planted()}, sheet).profile;
  CHECK(profile.speed_spread->value == 0.02);  // copied
  CHECK(close(profile.kernels.streaming.at("dropout").value,
              profile.kernels.streaming.at("elementwise").value / 4, 1e-3));
  // Where computing binds, by far: twice as long.
  cost::Kernel product{.kind = cost::KernelKind::gemm, .m = 8192, .n = 8192, .k = 8192, .batch = 1};
  const Seconds fixed = profile.kernels.gemm.at("fp16").fixed.value;
  const Seconds alike = cost::gemm_time(product, profile) - fixed;
  product.type = model::DataType::tf32;
  CHECK(close(cost::gemm_time(product, profile) - fixed, 2 * alike, 1e-3));
}

TEST_CASE("what was measured of the architecture is fitted, whatever it is said to be like") {
  Measurements measured = planted();
  measured.device.memory = 16_GB;  // as `calibrate measure --backend cuda` notes it: still a GPU
  StreamingTable dropout{
      .kind = "dropout", .operation = "dropout", .timing = Timing::kernel, .points = {}};
  for (double bytes = 1e5; bytes < 1e9; bytes *= 2)
    dropout.points.push_back({Bytes{bytes}, 5_us + Bytes{bytes} / 450_GBps});  // half of 900 GB/s
  measured.streaming.push_back(dropout);
  const Fit fit = fit_profile({measured}, datasheet());
  CHECK(close(fit.profile.kernels.streaming.at("dropout").value, 0.5, 0.01));
  CHECK(fit.profile.kernels.streaming.at("dropout").provenance == cost::Provenance::fitted);
  CHECK(fit.profile.evidence.at("dropout").parameters == 2);  // a share, and when it starts
  CHECK(close(fit.profile.kernels.streaming.at("elementwise").value, 0.9, 0.01));
  CHECK(fit.profile.kernels.streaming.at("softmax").provenance == cost::Provenance::assumed);

  measured.device.architecture = "foreign";
  const cost::Profile other = fit_profile({planted(), measured}, datasheet()).profile;
  CHECK(other.kernels.streaming.at("dropout").value ==
        other.kernels.streaming.at("elementwise").value);
}

TEST_CASE("a constant that nothing gives is named") {
  Measurements without = planted();
  without.all_reduces.clear();
  CHECK_THROWS_WITH(fit_profile({without}, datasheet()), ContainsSubstring("all_reduce"));
  without = planted();
  without.gemms.clear();
  CHECK_THROWS_WITH(fit_profile({without}, datasheet()), ContainsSubstring("fp16"));
  Datasheet sheet = datasheet();
  sheet.like.streaming.erase("softmax");
  CHECK_THROWS_WITH(fit_profile({planted()}, sheet), ContainsSubstring("softmax"));
}

}  // namespace
}  // namespace stratagem::calibrate

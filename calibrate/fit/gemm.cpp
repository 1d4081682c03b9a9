// Fits one set of constants for each data type.
#include "calibrate/fit/gemm.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "base/median.hpp"
#include "calibrate/fit/chosen.hpp"
#include "cost/gemm.hpp"
#include "cost/kernel.hpp"

namespace stratagem::calibrate {
namespace {

/// The rates of a GPU that was measured, as a profile in which GEMM constants can be tried.
cost::Profile rates_of(const Device& device, bool processor) {
  cost::Profile profile;
  if (processor) profile.collective.memory_efficiency = cost::Constant<double>{};
  profile.name = device.gpu;
  profile.multiprocessors.value = device.multiprocessors;
  for (const auto& [type, peak] : device.peak) profile.peak[type].value = peak;
  profile.memory.bandwidth.value = device.memory_bandwidth;
  return profile;
}

cost::Kernel kernel_of(const GemmPoint& point, model::DataType type) {
  const auto m = static_cast<double>(point.m);
  const auto n = static_cast<double>(point.n);
  const auto k = static_cast<double>(point.k);
  const auto batch = static_cast<double>(point.batch);
  return {.kind = cost::KernelKind::gemm,
          .type = type,
          .m = point.m,
          .n = point.n,
          .k = point.k,
          .batch = point.batch,
          .flops = Flops{2 * m * n * k * batch},
          .traffic = batch * (m * k + k * n + m * n) * model::size_of(type),
          .launches = 1};
}

std::uint64_t group_of(const GemmPoint& point) {
  std::uint64_t group = 0;
  for (const std::int64_t size : {point.m, point.n, point.k, point.batch}) {
    group = group * 1'000'003 + static_cast<std::uint64_t>(size);
  }
  return group;
}

/// What was measured of products, beside the rates of the device that it was measured on.
struct Products {
  struct Observation {
    std::size_t rates;
    cost::Kernel kernel;
    Seconds time;
  };
  std::vector<cost::Profile> rates;
  std::vector<Observation> observations;
  std::vector<std::uint64_t> groups;  ///< of observations; equal for equal shapes

  Products(const Chosen<GemmTable>& chosen, bool processor) {
    for (const auto& item : chosen.items) {
      rates.push_back(rates_of(item.from->device, processor));
      for (const GemmPoint& point : item.table->points) {
        observations.push_back({rates.size() - 1, kernel_of(point, item.table->type), point.time});
        groups.push_back(group_of(point));
      }
    }
  }
};

/// What products reach at most whose rows begin at multiples of fewer than 16 bytes: the median
/// share of the peak, by that number, of those that compute so much that nothing else holds them
/// up.
std::map<int, cost::Constant<double>> unaligned_shares(const Chosen<GemmTable>& chosen,
                                                       const std::string& type) {
  constexpr Flops large{5e10};
  std::map<int, std::vector<double>> shares;
  for (const auto& item : chosen.items) {
    const FlopsPerSecond peak = item.from->device.peak.at(type);
    for (const auto& [point, alignment] : item.table->unaligned) {
      const Flops flops = kernel_of(point, item.table->type).flops;
      if (flops >= large) shares[alignment].push_back(flops / point.time / peak);
    }
  }
  std::map<int, cost::Constant<double>> result;
  for (const auto& [alignment, values] : shares)
    result[alignment] = {
        .value = rounded(median(values)),
        .provenance = cost::Provenance::fitted,
        .source = "median of " + std::to_string(values.size()) + " on " + chosen.measured_on()};
  return result;
}

void fit_gemm(const Chosen<GemmTable>& chosen, const std::string& type, bool processor,
              Fit& result) {
  const Products products(chosen, processor);
  // Starts: the best shapes ever found reach 80 to 90 % of peak, streaming 70 to 95 % of the
  // bandwidth.
  const std::vector<Parameter> parameters{{"efficiency", Range::share, 0.9, 0.7},
                                          {"half_intensity", Range::positive, 16, 0.7},
                                          {"ramp", Range::positive, 64, 1},
                                          {"streaming", Range::share, 0.8, 0.7},
                                          {"fixed", Range::positive, 4e-6, 0.7}};
  const auto constants = [](const std::vector<double>& values) {
    cost::GemmConstants gemm;
    gemm.efficiency.value = values[0];
    gemm.half_intensity.value = values[1];
    gemm.ramp.value = values[2];
    gemm.streaming.value = values[3];
    gemm.fixed.value = Seconds{values[4]};
    return gemm;
  };
  const auto log_ratio = [&](std::size_t i, const std::vector<double>& values) {
    const auto& [rates, kernel, time] = products.observations[i];
    return std::log(cost::gemm_time(kernel, constants(values), products.rates[rates]) / time);
  };
  const Estimate estimate = fit(parameters, products.groups, log_ratio);
  const Source source(chosen, type + " GEMMs", estimate);
  result.profile.kernels.gemm[type] = {.efficiency = source.constant(estimate.values[0]),
                                       .half_intensity = source.constant(estimate.values[1]),
                                       .ramp = source.constant(estimate.values[2]),
                                       .streaming = source.constant(estimate.values[3]),
                                       .fixed = source.constant(Seconds{estimate.values[4]})};
  note(result, "gemm " + type, chosen, estimate, parameters, log_ratio);
}

/// What the factor rests on is said of the efficiency alone; its error is not known.
void make_longer(cost::GemmConstants& gemm, double times) {
  gemm.efficiency.value = rounded(gemm.efficiency.value / times);
  gemm.efficiency.error = 0;
  for (auto* other : {&gemm.half_intensity, &gemm.ramp, &gemm.streaming})
    other->provenance = cost::Provenance::assumed;
  gemm.fixed.provenance = cost::Provenance::assumed;
}

/// Types of 16 bits have the same tensor cores and the same rows.
void share_unaligned(std::map<std::string, cost::GemmConstants>& gemm) {
  for (const auto& [type, other] : {std::pair{"fp16", "bf16"}, std::pair{"bf16", "fp16"}}) {
    if (!gemm.contains(type) || !gemm.contains(other) || !gemm.at(type).unaligned.empty()) continue;
    gemm[type].unaligned = gemm.at(other).unaligned;
    for (auto& [alignment, share] : gemm[type].unaligned)
      share.source = std::string("as ") + other + ": " + share.source;
  }
}

}  // namespace

void fit_gemms(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
               Fit& result) {
  auto& gemm = result.profile.kernels.gemm;
  for (const auto& entry : datasheet.peak) {
    const std::string& type = entry.first;
    const auto chosen =
        choose(measurements, datasheet, &Measurements::gemms, [&type](const GemmTable& table) {
          return model::to_text(table.type) == type && !table.points.empty();
        });
    const bool alike = datasheet.like.gemm.contains(type);  // what is measured is like itself
    if (alike && (chosen.items.empty() || !chosen.same_architecture)) continue;
    if (chosen.items.empty()) {
      throw InputError(datasheet.file, "/gemm",
                       "measured GEMMs of " + type + ", or what they are alike", "");
    }
    fit_gemm(chosen, type, datasheet.processor.has_value(), result);
    const auto unaligned =
        choose(measurements, datasheet, &Measurements::gemms, [&type](const GemmTable& table) {
          return model::to_text(table.type) == type && !table.unaligned.empty();
        });
    if (unaligned.same_architecture) gemm[type].unaligned = unaligned_shares(unaligned, type);
  }
  for (const auto& [type, likeness] : datasheet.like.gemm) {
    if (gemm.contains(type)) continue;
    const auto original = gemm.find(likeness.as);
    if (original == gemm.end()) {
      throw InputError(datasheet.file, "/gemm/" + type + "/as", "a data type that was fitted",
                       likeness.as);
    }
    copy_evidence(result.profile, "gemm " + likeness.as, "gemm " + type);
    const cost::GemmConstants& other = original->second;
    gemm[type] = {.efficiency = as_another(likeness, other.efficiency),
                  .half_intensity = as_another(likeness, other.half_intensity),
                  .ramp = as_another(likeness, other.ramp),
                  .streaming = as_another(likeness, other.streaming),
                  .fixed = as_another(likeness, other.fixed)};
    if (likeness.times_as_long != 1) make_longer(gemm[type], likeness.times_as_long);
  }
  share_unaligned(gemm);
}

}  // namespace stratagem::calibrate

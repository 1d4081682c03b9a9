// Fits all-reduces within a server, in closed form and by the model of NCCL, or keeps measured
// times.
#include "calibrate/fit/collectives.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "base/input_error.hpp"
#include "calibrate/fit/chosen.hpp"
#include "calibrate/fit/mpi.hpp"
#include "calibrate/fit/nccl.hpp"

namespace stratagem::calibrate {
namespace {

/// `stated`: an nvlink_efficiency that is more reliable than measurements of another architecture.
void fit_collective(const Chosen<AllReduceTable>& chosen,
                    const std::optional<cost::Constant<double>>& stated, Fit& result) {
  struct Observation {
    BytesPerSecond link;
    AllReducePoint point;
  };
  std::vector<Observation> observations;
  std::vector<std::uint64_t> groups;
  for (const auto& item : chosen.items) {
    for (const AllReducePoint& point : item.table->points) {
      groups.push_back(observations.size());
      observations.push_back({item.from->device.nvlink, point});
    }
  }
  const std::vector<Parameter> parameters{{"nvlink_efficiency", Range::share, 0.85, 0.7},
                                          {"base", Range::positive, 20e-6, 1},
                                          {"node_step", Range::positive, 4e-6, 1}};
  const auto log_ratio = [&](std::size_t i, const std::vector<double>& values) {
    const auto& [link, point] = observations[i];
    const int steps = 2 * (point.ranks - 1);
    const Seconds time =
        Seconds{values[1]} + steps * Seconds{values[2]} +
        static_cast<double>(steps) / point.ranks * point.size / (point.links * link * values[0]);
    return std::log(time / point.time);
  };
  const Estimate estimate = fit(parameters, groups, log_ratio);
  const Source source(chosen, "all-reduce times", estimate);
  result.profile.collective.nvlink_efficiency =
      stated && !chosen.same_architecture ? *stated : source.constant(estimate.values[0]);
  result.profile.collective.base = source.constant(Seconds{estimate.values[1]});
  result.profile.collective.node_step = source.constant(Seconds{estimate.values[2]});
  note(result, "all_reduce", chosen, estimate, parameters, log_ratio);
}

/// Times of ranks on processors, which need no formula.
void take_times(const std::vector<Measurements>& measurements, Fit& result) {
  for (const auto& [kind, fit] : fit_mpi(measurements)) {
    result.profile.collective.times[kind] = fit.times;
    result.qualities.push_back({.what = "mpi " + kind,
                                .points = fit.points,
                                .median_error = fit.median_error,
                                .cross_validated_error = fit.times.error});
  }
}

/// Constants of NCCL's model, where this architecture was measured: another's link speeds and
/// protocols would not do.
void fit_added_to_nccl(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                       Fit& result) {
  const auto chosen = choose(measurements, datasheet, &Measurements::nccl_all_reduces,
                             [](const NcclTable&) { return true; });
  if (!chosen.same_architecture) return;
  for (const auto& [from, table] : chosen.items) {
    const NcclFit found = fit_nccl(*table);
    const cost::NcclConstants& values = found.constants;
    const std::string where = from->device.gpu + " (" + from->origin.source + ")";
    const auto constant = [&](auto value) {
      return cost::Constant<decltype(value)>{
          .value = rounded(value),
          .provenance = cost::Provenance::fitted,
          .source = "fitted to " + std::to_string(found.estimate.log_ratios.size()) +
                    " all-reduce times on " + where + " with NCCL " + table->version + "'s model",
          .error = rounded(found.estimate.cross_validated_error, 2)};
    };
    // Six digits: their product with nvlink_efficiency is what was fitted, to its four.
    const double factor =
        rounded(over_efficiency(rounded(values.bandwidth_factor.value), table->cluster,
                                result.profile.collective.nvlink_efficiency.value),
                6);
    cost::Constant<double> bandwidth_factor = constant(factor);
    bandwidth_factor.value = factor;
    result.profile.collective.nccl = {.added = constant(values.added.value),
                                      .latency_factor = constant(values.latency_factor.value),
                                      .bandwidth_factor = bandwidth_factor,
                                      .copy = constant(values.copy.value)};
    note(result, "nccl all_reduce", where, true, found.estimate, found.judgement);
  }
}

}  // namespace

void fit_collectives(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                     Fit& result) {
  if (datasheet.processor) {
    result.profile.collective = datasheet.processor->collective;
    return take_times(measurements, result);
  }
  const auto all_reduces = choose(measurements, datasheet, &Measurements::all_reduces,
                                  [](const AllReduceTable&) { return true; });
  if (all_reduces.items.empty()) {
    throw InputError(datasheet.file, "/measurements",
                     "a file with a table of the kind \"all_reduce\"", "none");
  }
  fit_collective(all_reduces, datasheet.links.nvlink_efficiency, result);
  cost::CollectiveConstants& collective = result.profile.collective;
  collective.network_efficiency = datasheet.links.network_efficiency;
  collective.pcie_efficiency = datasheet.links.pcie_efficiency;
  collective.network_step = datasheet.links.network_step;
  collective.node_link_latency = datasheet.links.node_link_latency;
  collective.network_link_latency = datasheet.links.network_link_latency;
  collective.compute_slowdown = datasheet.links.compute_slowdown;
  fit_added_to_nccl(measurements, datasheet, result);
}

}  // namespace stratagem::calibrate

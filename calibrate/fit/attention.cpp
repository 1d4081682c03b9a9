// Fits one share of the peak for each pass.
#include "calibrate/fit/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "calibrate/fit/chosen.hpp"

namespace stratagem::calibrate {
namespace {

/// fp32 has no tensor cores, and its share says nothing of theirs.
Chosen<AttentionTable> choose_pass(const std::vector<Measurements>& measurements,
                                   const Datasheet& datasheet, cost::KernelKind pass) {
  return choose(measurements, datasheet, &Measurements::attentions,
                [pass](const AttentionTable& table) {
                  const bool narrow =
                      table.type == model::DataType::fp16 || table.type == model::DataType::bf16;
                  return narrow && table.kind == pass;
                });
}

/// As cost::kernel_time has it, with the operations that a causal mask leaves.
cost::Constant<double> fit_pass(const Chosen<AttentionTable>& chosen, const std::string& what,
                                Fit& result) {
  struct Observation {
    FlopsPerSecond peak;
    BytesPerSecond bandwidth;
    AttentionPoint point;
  };
  const double moved = result.profile.kernels.streaming.at("elementwise").value;
  std::vector<Observation> observations;
  std::vector<std::uint64_t> groups;
  for (const auto& item : chosen.items) {
    const FlopsPerSecond peak = item.from->device.peak.at(model::to_text(item.table->type));
    for (const AttentionPoint& point : item.table->points) {
      groups.push_back(observations.size());
      observations.push_back({peak, moved * item.from->device.memory_bandwidth, point});
    }
  }
  const std::vector<Parameter> parameters{{"share", Range::share, 0.5, 0.7}};
  const Seconds floor = result.profile.kernels.floor.value;
  const auto log_ratio = [&](std::size_t i, const std::vector<double>& values) {
    const auto& [peak, bandwidth, point] = observations[i];
    const Seconds busy = std::max(point.flops / (values[0] * peak), point.bytes / bandwidth);
    return std::log((floor + busy) / point.time);
  };
  const Estimate estimate = fit(parameters, groups, log_ratio);
  note(result, what, chosen, estimate, parameters, log_ratio);
  return Source(chosen, what + " times", estimate).constant(estimate.values[0]);
}

}  // namespace

void fit_attention(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                   Fit& result) {
  const auto forward = choose_pass(measurements, datasheet, cost::KernelKind::attention);
  const auto backward = choose_pass(measurements, datasheet, cost::KernelKind::attention_backward);
  for (const auto* pass : {&forward, &backward})
    if (pass->items.empty() || !pass->same_architecture) return;
  result.profile.kernels.attention = {.forward = fit_pass(forward, "attention", result),
                                      .backward = fit_pass(backward, "attention_backward", result)};
}

}  // namespace stratagem::calibrate

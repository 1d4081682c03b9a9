// Fits an efficiency, a ramp and a tile for each implementation, size of a head and pass.
#include "calibrate/fit/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/input_error.hpp"
#include "calibrate/fit/chosen.hpp"
#include "cost/attention.hpp"

namespace stratagem::calibrate {
namespace {

/// fp32 has no tensor cores, and its share says nothing of theirs.
Chosen<AttentionTable> choose_pass(const std::vector<Measurements>& measurements,
                                   const Datasheet& datasheet, cost::KernelKind pass,
                                   std::string_view implementation) {
  return choose(measurements, datasheet, &Measurements::attentions,
                [&](const AttentionTable& table) {
                  const bool narrow =
                      table.type == model::DataType::fp16 || table.type == model::DataType::bf16;
                  return narrow && table.kind == pass && table.implementation == implementation;
                });
}

/// Of every implementation of which this architecture's passes were measured, both of them.
struct BothPasses {
  Chosen<AttentionTable> forward{.items = {}, .same_architecture = true};
  Chosen<AttentionTable> backward{.items = {}, .same_architecture = true};

  BothPasses(const std::vector<Measurements>& measurements, const Datasheet& datasheet) {
    for (const std::string_view name : cost::attention_implementations) {
      const auto of = [&](cost::KernelKind pass) {
        const auto found = choose_pass(measurements, datasheet, pass, name);
        return found.same_architecture ? found.items : std::vector<Chosen<AttentionTable>::Item>{};
      };
      const auto one = of(cost::KernelKind::attention);
      const auto other = of(cost::KernelKind::attention_backward);
      if (one.empty() != other.empty()) {
        throw InputError((one.empty() ? other : one).front().from->file, "/tables",
                         std::string(one.empty() ? "attention" : "attention_backward") + " by " +
                             std::string(name) + ", since the other pass is there",
                         "none");
      }
      forward.items.insert(forward.items.end(), one.begin(), one.end());
      backward.items.insert(backward.items.end(), other.begin(), other.end());
    }
  }
};

/// Of one implementation, with heads of one size.
using Variant = std::pair<std::string, int>;

/// What was measured of one pass, all implementations and sizes together.
class PassModel {
 public:
  PassModel(const Chosen<AttentionTable>& chosen, double moved) {
    for (const auto& item : chosen.items) {
      const double multiprocessors = item.from->device.multiprocessors;
      const FlopsPerSecond peak = item.from->device.peak.at(model::to_text(item.table->type));
      for (const AttentionPoint& point : item.table->points) {
        const Variant variant{item.table->implementation, point.size};
        const auto [found, fresh] = first_.try_emplace(variant, parameters_.size());
        if (fresh) {
          parameters_.push_back({"efficiency", Range::share, 0.5, 0.7});
          parameters_.push_back({"ramp", Range::positive, 100, 0.7});
          parameters_.push_back({"tile", Range::positive, 100, 0.7});
        }
        observations_.push_back({multiprocessors, peak, moved * item.from->device.memory_bandwidth,
                                 point, found->second});
      }
    }
  }

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::map<Variant, std::size_t>& variants() const { return first_; }
  /// As cost::kernel_time has it, with the operations that a causal mask leaves.
  [[nodiscard]] LogRatio log_ratio(Seconds floor) const {
    return [this, floor](std::size_t i, const std::vector<double>& values) {
      const auto& [multiprocessors, peak, bandwidth, point, first] = observations_[i];
      cost::AttentionPass pass;
      pass.efficiency.value = values[first];
      pass.ramp.value = values[first + 1];
      pass.tile.value = values[first + 2];
      const double share = cost::attention_share(pass, point.sizes, multiprocessors);
      const Seconds busy = std::max(point.flops / (share * peak), point.bytes / bandwidth);
      return std::log((floor + busy) / point.time);
    };
  }
  [[nodiscard]] std::vector<std::uint64_t> groups() const {
    std::vector<std::uint64_t> groups(observations_.size());
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = i;
    return groups;
  }

 private:
  struct Observation {
    double multiprocessors;
    FlopsPerSecond peak;
    BytesPerSecond bandwidth;
    AttentionPoint point;
    std::size_t first;  ///< of its three parameters
  };
  std::vector<Parameter> parameters_;
  std::map<Variant, std::size_t> first_;
  std::vector<Observation> observations_;
};

Chosen<AttentionTable> of_implementation(const Chosen<AttentionTable>& all,
                                         const std::string& implementation) {
  Chosen<AttentionTable> some{.items = {}, .same_architecture = all.same_architecture};
  for (const auto& item : all.items)
    if (item.table->implementation == implementation) some.items.push_back(item);
  return some;
}

std::map<Variant, cost::AttentionPass> fit_pass(const Chosen<AttentionTable>& chosen,
                                                const std::string& what, Fit& result) {
  const PassModel model(chosen, result.profile.kernels.streaming.at("elementwise").value);
  const LogRatio log_ratio = model.log_ratio(result.profile.kernels.floor.value);
  const Estimate estimate = fit(model.parameters(), model.groups(), log_ratio);
  note(result, what, chosen, estimate, model.parameters(), log_ratio);
  std::map<Variant, cost::AttentionPass> passes;
  for (const auto& [variant, first] : model.variants()) {
    const Source source(of_implementation(chosen, variant.first), what + " times", estimate);
    passes[variant] = {.efficiency = source.constant(estimate.values[first]),
                       .ramp = source.constant(estimate.values[first + 1]),
                       .tile = source.constant(estimate.values[first + 2])};
  }
  return passes;
}

}  // namespace

void fit_attention(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                   Fit& result) {
  const auto& [forward, backward] = BothPasses(measurements, datasheet);
  if (forward.items.empty()) return;
  const auto passes = fit_pass(forward, "attention", result);
  result.profile.kernels.attention.clear();
  for (const auto& [variant, back] : fit_pass(backward, "attention_backward", result)) {
    if (const auto there = passes.find(variant); there != passes.end())
      result.profile.kernels.attention[variant.first][variant.second] = {there->second, back};
  }
}

}  // namespace stratagem::calibrate

// Fits one share of the bandwidth for each kind, or for each of its passes.
#include "calibrate/fit/streaming.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "base/input_error.hpp"
#include "base/median.hpp"
#include "calibrate/fit/chosen.hpp"
#include "cost/kernel.hpp"
#include "cost/kernel_kind.hpp"

namespace stratagem::calibrate {
namespace {

/// t = start + bytes / (share * bandwidth), or of eager tables no less than their floor: one share,
/// or one for each pass, and a start for each table. A kernel of a processor is a call and has no
/// start: what small ones take more would be in it, and in no prediction.
class StreamingModel {
 public:
  StreamingModel(const Chosen<StreamingTable>& chosen, bool by_pass, bool processor) {
    const auto share = [](const char* name) { return Parameter{name, Range::share, 0.8, 0.7}; };
    parameters_ =
        by_pass ? std::vector{share("forward"), share("gradient")} : std::vector{share("share")};
    for (const auto& item : chosen.items) add(*item.from, *item.table, by_pass, processor);
  }

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] LogRatio log_ratio() const {
    return [this](std::size_t i, const std::vector<double>& values) {
      const auto& [bandwidth, point, share, start, floor] = observations_[i];
      const Seconds moving = point.bytes / (bandwidth * values[share]);
      const Seconds busy = start == 0 ? moving : Seconds{values[start]} + moving;
      return std::log((floor == 0 ? busy : std::max(busy, Seconds{values[floor]})) / point.time);
    };
  }
  [[nodiscard]] Estimate estimate() const {
    std::vector<std::uint64_t> groups(observations_.size());
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = i;
    return fit(parameters_, groups, log_ratio());
  }

  /// The median `floor` of the eager tables, 0 where there are none.
  [[nodiscard]] Seconds host_time(const Estimate& estimate) const {
    std::vector<double> host_times;
    host_times.reserve(floors_.size());
    for (const std::size_t floor : floors_) host_times.push_back(estimate.values[floor]);
    return host_times.empty() ? Seconds{} : Seconds{median(host_times)};
  }

 private:
  struct Observation {
    BytesPerSecond bandwidth;
    StreamingPoint point;
    std::size_t share;
    std::size_t start;  ///< 0 on a processor
    std::size_t floor;  ///< 0 where the table is not eager
  };

  void add(const Measurements& from, const StreamingTable& table, bool by_pass, bool processor) {
    const bool eager = table.timing == Timing::eager;
    const bool gradient = by_pass && pass_of(table.operation) == cost::KernelPass::gradient;
    const std::size_t start = processor ? 0 : parameters_.size();
    if (!processor) parameters_.push_back({"start", Range::positive, eager ? 15e-6 : 3e-6, 1});
    if (eager) {
      floors_.push_back(parameters_.size());
      parameters_.push_back({"floor", Range::positive, 30e-6, 1});
    }
    for (const StreamingPoint& point : table.points) {
      observations_.push_back({.bandwidth = from.device.memory_bandwidth,
                               .point = point,
                               .share = gradient ? std::size_t{1} : std::size_t{0},
                               .start = start,
                               .floor = eager ? floors_.back() : 0});
    }
  }

  std::vector<Parameter> parameters_;
  std::vector<Observation> observations_;
  std::vector<std::size_t> floors_;
};

/// Were both passes of a kind measured?
bool both_passes(const Chosen<StreamingTable>& chosen) {
  const auto gradients = std::ranges::count_if(chosen.items, [](const auto& item) {
    return pass_of(item.table->operation) == cost::KernelPass::gradient;
  });
  return gradients > 0 && gradients < std::ssize(chosen.items);
}

/// The kind's share; where both passes were measured a share of each, and as the kind's the one at
/// which as many bytes of both take as long. Returns the host's time of an eager operator, 0 where
/// there are none.
Seconds fit_streaming(const Chosen<StreamingTable>& chosen, const std::string& kind, bool processor,
                      Fit& result) {
  const bool by_pass = both_passes(chosen);
  const StreamingModel model(chosen, by_pass, processor);
  const Estimate estimate = model.estimate();
  const Source source(chosen, kind + " times", estimate);
  double share = estimate.values[0];
  if (by_pass) {
    const double forward = estimate.values[0], gradient = estimate.values[1];
    result.profile.kernels.by_pass[kind] = {.forward = source.constant(forward),
                                            .gradient = source.constant(gradient)};
    share = 2 / (1 / forward + 1 / gradient);
  }
  result.profile.kernels.streaming[kind] = source.constant(share);
  note(result, kind, chosen, estimate, model.parameters(), model.log_ratio());
  return model.host_time(estimate);
}

/// Tables of a kind, of this architecture or else of another.
Chosen<StreamingTable> choose_kind(const std::vector<Measurements>& measurements,
                                   const Datasheet& datasheet, const std::string& kind) {
  return choose(measurements, datasheet, &Measurements::streaming,
                [&kind](const StreamingTable& table) { return table.kind == kind; });
}

cost::Constant<Seconds> launch_of(const Chosen<StreamingTable>& chosen, Seconds host_time) {
  return {
      .value = rounded(host_time),
      .provenance = chosen.same_architecture ? cost::Provenance::fitted : cost::Provenance::assumed,
      .source = "host time of an operator and an event record, an upper bound: " +
                chosen.source("eager times"),
      .error = 0};
}

/// One kind of kernel that moves memory; eager elementwise operators also tell the launch cost.
void fit_streaming_kind(const Chosen<StreamingTable>& chosen, const Datasheet& datasheet,
                        const std::string& kind, Fit& result) {
  if (chosen.items.empty()) {
    throw InputError(datasheet.file, "/streaming",
                     "measured times of " + kind + ", or what it is alike", "");
  }
  const Seconds host_time = fit_streaming(chosen, kind, datasheet.processor.has_value(), result);
  if (kind != "elementwise" || host_time == Seconds{} || !result.profile.launch.source.empty())
    return;
  result.profile.launch = launch_of(chosen, host_time);
}

/// The launch cost where no eager operator was among those that the share is fitted to.
void fit_launch(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                Fit& result) {
  const auto chosen =
      choose(measurements, datasheet, &Measurements::streaming, [](const StreamingTable& table) {
        return table.kind == "elementwise" && table.timing == Timing::eager;
      });
  if (chosen.items.empty()) {
    throw InputError(datasheet.file, "/measurements",
                     "eager elementwise times, for the launch cost", "none");
  }
  const StreamingModel model(chosen, false, false);
  result.profile.launch = launch_of(chosen, model.host_time(model.estimate()));
}

}  // namespace

void fit_streaming_kinds(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                         Fit& result) {
  std::set<std::string> measured;  // what is measured of this architecture is like itself
  for (const std::string& kind : cost::streaming_kinds()) {
    const auto chosen = choose_kind(measurements, datasheet, kind);
    const bool alike = datasheet.like.streaming.contains(kind);
    if (alike && (chosen.items.empty() || !chosen.same_architecture)) continue;
    fit_streaming_kind(chosen, datasheet, kind, result);
    measured.insert(kind);
  }
  if (datasheet.processor) result.profile.launch = datasheet.processor->launch;
  if (result.profile.launch.source.empty()) fit_launch(measurements, datasheet, result);
  auto& streaming = result.profile.kernels.streaming;
  for (const auto& [kind, likeness] : datasheet.like.streaming) {
    if (measured.contains(kind)) continue;
    const auto original = streaming.find(likeness.as);
    if (original == streaming.end()) {
      throw InputError(datasheet.file, "/streaming/" + kind + "/as", "a kind that was fitted",
                       likeness.as);
    }
    copy_evidence(result.profile, likeness.as, kind);
    streaming[kind] = as_another(likeness, original->second);
    streaming[kind].value = rounded(streaming[kind].value / likeness.times_as_long);
  }
}

}  // namespace stratagem::calibrate

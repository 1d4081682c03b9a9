// The model of each kind of measurement, and how its constants enter the profile.
#include "calibrate/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "base/median.hpp"
#include "base/quantity_text.hpp"
#include "calibrate/least_squares.hpp"
#include "calibrate/mpi_fit.hpp"
#include "calibrate/nccl_fit.hpp"
#include "cost/gemm.hpp"
#include "cost/kernel.hpp"

namespace stratagem::calibrate {
namespace {

double rounded(double value, int digits = 4) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return std::strtod(text.data(), nullptr);
}
Seconds rounded(Seconds value) { return *parse_quantity<Seconds>(to_text(value)); }
BytesPerSecond rounded(BytesPerSecond value) {
  return *parse_quantity<BytesPerSecond>(to_text(value));
}

/// Tables of one kind with the measurements that they stand in.
template <typename Table>
struct Chosen {
  struct Item {
    const Measurements* from;
    const Table* table;
  };
  std::vector<Item> items;
  bool same_architecture = true;

  [[nodiscard]] std::size_t points() const {
    std::size_t count = 0;
    for (const Item& item : items) count += item.table->points.size();
    return count;
  }
  /// "160 points on V100-SXM2-16GB (DeepBench ...)".
  [[nodiscard]] std::string source(const std::string& what) const {
    return (same_architecture ? "fitted to " : "another architecture's, fitted to ") +
           std::to_string(points()) + " " + what + " on " + measured_on();
  }
  [[nodiscard]] std::string measured_on() const {
    std::vector<const Measurements*> files;
    for (const Item& item : items) {
      if (std::find(files.begin(), files.end(), item.from) == files.end())
        files.push_back(item.from);
    }
    std::string text;
    for (const Measurements* file : files)
      text += (text.empty() ? "" : "; ") + file->device.gpu + " (" + file->source + ")";
    return text;
  }
};

/// The wanted tables of the datasheet's architecture or, where there are none, of all others.
template <typename Table, typename Wanted>
Chosen<Table> choose(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                     std::vector<Table> Measurements::*tables, const Wanted& wanted) {
  Chosen<Table> same;
  Chosen<Table> other{.items = {}, .same_architecture = false};
  for (const Measurements& from : measurements) {
    auto& chosen = from.device.architecture == datasheet.architecture ? same : other;
    for (const Table& table : from.*tables) {
      if (wanted(table)) chosen.items.push_back({&from, &table});
    }
  }
  return same.items.empty() ? other : same;
}

/// Makes constants of what one fit gave.
class Source {
 public:
  template <typename Table>
  Source(const Chosen<Table>& chosen, const std::string& what, const Estimate& estimate)
      : provenance_(chosen.same_architecture ? cost::Provenance::fitted
                                             : cost::Provenance::assumed),
        text_(chosen.source(what)),
        error_(rounded(estimate.cross_validated_error, 2)) {}

  template <typename T>
  [[nodiscard]] cost::Constant<T> constant(T value) const {
    return {.value = rounded(value), .provenance = provenance_, .source = text_, .error = error_};
  }

 private:
  cost::Provenance provenance_;
  std::string text_;
  double error_;
};

/// The rates of a GPU that was measured, as a profile in which GEMM constants can be tried.
cost::Profile rates_of(const Device& device, bool processor) {
  cost::Profile profile;
  if (processor) profile.collective.memory_efficiency = cost::Constant<double>{};
  profile.name = device.gpu;
  profile.multiprocessors.value = device.multiprocessors;
  for (const auto& [type, peak] : device.peak) profile.peak[type].value = peak;
  profile.memory_bandwidth.value = device.memory_bandwidth;
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

MeasuredPoint judged(const GemmPoint& point) {
  const auto text = [](std::int64_t size) { return std::to_string(size); };
  return {.family = point.family,
          .shape = (point.batch == 1 ? "" : text(point.batch) + " of ") + text(point.m) + " x " +
                   text(point.n) + " x " + text(point.k),
          .size = 2.0 * static_cast<double>(point.m) * static_cast<double>(point.n) *
                  static_cast<double>(point.k) * static_cast<double>(point.batch),
          .smallest = static_cast<double>(std::min({point.m, point.n, point.k})),
          .time = point.time};
}

MeasuredPoint judged(const StreamingPoint& point) {
  const bool rate_only = point.bytes >= very_large;
  return {.family = point.family,
          .shape = rate_only ? "very large" : to_text(point.bytes),
          .size = rate_only ? 0 : point.bytes.value,
          .time = point.time};
}

MeasuredPoint judged(const AllReducePoint& point) {
  return {.family = point.family,
          .shape = to_text(point.size) + " on " + std::to_string(point.ranks) + " ranks",
          .size = point.size.value,
          .ranks = point.ranks,
          .time = point.time};
}

template <typename Table>
std::vector<MeasuredPoint> judged(const Chosen<Table>& chosen) {
  std::vector<MeasuredPoint> points;
  for (const auto& item : chosen.items) {
    for (const auto& point : item.table->points) points.push_back(judged(point));
  }
  return points;
}

void note(Fit& fit, const std::string& what, const std::string& measured_on, bool same_architecture,
          const Estimate& estimate, Judgement judgement) {
  cost::Evidence& evidence = fit.profile.evidence[what] = evidence_of(judgement);
  evidence.of = what;
  evidence.source = measured_on;
  evidence.another_architecture = !same_architecture;
  fit.qualities.push_back({.what = what,
                           .points = estimate.log_ratios.size(),
                           .median_error = estimate.median_error,
                           .cross_validated_error = estimate.cross_validated_error,
                           .judgement = std::move(judgement)});
}

template <typename Table>
void note(Fit& fit, const std::string& what, const Chosen<Table>& chosen, const Estimate& estimate,
          const std::vector<Parameter>& parameters, const LogRatio& log_ratio) {
  note(fit, what, chosen.measured_on(), chosen.same_architecture, estimate,
       judge(parameters, estimate, judged(chosen), log_ratio));
}

void fit_gemm(const Chosen<GemmTable>& chosen, const std::string& type, bool processor,
              Fit& result) {
  struct Observation {
    std::size_t rates;
    cost::Kernel kernel;
    Seconds time;
  };
  std::vector<cost::Profile> rates;
  std::vector<Observation> observations;
  std::vector<std::uint64_t> groups;
  for (const auto& item : chosen.items) {
    rates.push_back(rates_of(item.from->device, processor));
    for (const GemmPoint& point : item.table->points) {
      observations.push_back({rates.size() - 1, kernel_of(point, item.table->type), point.time});
      groups.push_back(group_of(point));
    }
  }
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
    const Observation& seen = observations[i];
    return std::log(cost::gemm_time(seen.kernel, constants(values), rates[seen.rates]) / seen.time);
  };
  const Estimate estimate = fit(parameters, groups, log_ratio);
  const Source source(chosen, type + " GEMMs", estimate);
  result.profile.gemm[type] = {.efficiency = source.constant(estimate.values[0]),
                               .half_intensity = source.constant(estimate.values[1]),
                               .ramp = source.constant(estimate.values[2]),
                               .streaming = source.constant(estimate.values[3]),
                               .fixed = source.constant(Seconds{estimate.values[4]})};
  note(result, "gemm " + type, chosen, estimate, parameters, log_ratio);
}

/// t = start + bytes / (share * bandwidth), or of eager tables no less than their floor: one share,
/// or one for each pass, and a start for each table.
class StreamingModel {
 public:
  StreamingModel(const Chosen<StreamingTable>& chosen, bool by_pass) {
    const auto share = [](const char* name) { return Parameter{name, Range::share, 0.8, 0.7}; };
    parameters_ =
        by_pass ? std::vector{share("forward"), share("gradient")} : std::vector{share("share")};
    for (const auto& item : chosen.items) add(*item.from, *item.table, by_pass);
  }

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] LogRatio log_ratio() const {
    return [this](std::size_t i, const std::vector<double>& values) {
      const auto& [bandwidth, point, share, start, floor] = observations_[i];
      const Seconds busy = Seconds{values[start]} + point.bytes / (bandwidth * values[share]);
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
    std::size_t share, start;
    std::size_t floor;  ///< 0 where the table is not eager
  };

  void add(const Measurements& from, const StreamingTable& table, bool by_pass) {
    const bool eager = table.timing == Timing::eager;
    const bool gradient = by_pass && pass_of(table.operation) == cost::KernelPass::gradient;
    const std::size_t start = parameters_.size();
    parameters_.push_back({"start", Range::positive, eager ? 15e-6 : 3e-6, 1});
    if (eager) {
      floors_.push_back(parameters_.size());
      parameters_.push_back({"floor", Range::positive, 30e-6, 1});
    }
    for (const StreamingPoint& point : table.points) {
      observations_.push_back({.bandwidth = from.device.memory_bandwidth,
                               .point = point,
                               .share = gradient ? std::size_t{1} : std::size_t{0},
                               .start = start,
                               .floor = eager ? start + 1 : 0});
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
Seconds fit_streaming(const Chosen<StreamingTable>& chosen, const std::string& kind, Fit& result) {
  const bool by_pass = both_passes(chosen);
  const StreamingModel model(chosen, by_pass);
  const Estimate estimate = model.estimate();
  const Source source(chosen, kind + " times", estimate);
  double share = estimate.values[0];
  if (by_pass) {
    const double forward = estimate.values[0], gradient = estimate.values[1];
    result.profile.streaming_by_pass[kind] = {.forward = source.constant(forward),
                                              .gradient = source.constant(gradient)};
    share = 2 / (1 / forward + 1 / gradient);
  }
  result.profile.streaming[kind] = source.constant(share);
  note(result, kind, chosen, estimate, model.parameters(), model.log_ratio());
  return model.host_time(estimate);
}

void fit_collective(const Chosen<AllReduceTable>& chosen, Fit& result) {
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
  result.profile.collective.nvlink_efficiency = source.constant(estimate.values[0]);
  result.profile.collective.base = source.constant(Seconds{estimate.values[1]});
  result.profile.collective.node_step = source.constant(Seconds{estimate.values[2]});
  note(result, "all_reduce", chosen, estimate, parameters, log_ratio);
}

cost::Constant<Seconds> kernel_floor(const std::vector<Measurements>& measurements,
                                     const Datasheet& datasheet) {
  if (datasheet.kernel_floor) return *datasheet.kernel_floor;
  for (const bool same : {true, false}) {
    for (const Measurements& from : measurements) {
      if (from.kernel_gaps.empty() || (from.device.architecture == datasheet.architecture) != same)
        continue;
      std::vector<double> gaps;
      for (const Seconds gap : from.kernel_gaps) gaps.push_back(gap.value);
      const std::string where =
          "kernels back to back on " + from.device.gpu + " (" + from.source + ")";
      if (!same) {
        return {.value = rounded(Seconds{median(gaps)}),
                .provenance = cost::Provenance::assumed,
                .source = "another architecture's, " + where};
      }
      return {.value = rounded(Seconds{median(gaps)}),
              .provenance = from.status == "measured" ? cost::Provenance::measured
                                                      : cost::Provenance::published,
              .source = where};
    }
  }
  throw InputError(datasheet.file, "/measurements",
                   "a file with a table of the kind \"kernel_gap\"", "none");
}

template <typename T>
cost::Constant<T> as_another(const Likeness& likeness, const cost::Constant<T>& original) {
  auto constant = original;
  constant.provenance = std::max(likeness.provenance, original.provenance);
  constant.source = "as " + likeness.as + ": " + likeness.because;
  return constant;
}

/// What another kind rests on, this one does too: its sizes are those that were measured. Errors
/// stand with the other one.
void copy_evidence(cost::Profile& profile, const std::string& from, const std::string& to) {
  if (const auto found = profile.evidence.find(from); found != profile.evidence.end())
    profile.evidence[to] = {.of = found->second.of,
                            .source = found->second.source,
                            .another_architecture = found->second.another_architecture,
                            .parameters = found->second.parameters,
                            .families = found->second.families,
                            .size = found->second.size,
                            .smallest = found->second.smallest};
}

/// Every data type that the GPU has a peak for: fitted, or like another one.
void fit_gemms(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
               Fit& result) {
  auto& gemm = result.profile.gemm;
  for (const auto& entry : datasheet.peak) {
    const std::string& type = entry.first;
    if (datasheet.gemm.contains(type)) continue;
    const auto chosen =
        choose(measurements, datasheet, &Measurements::gemms,
               [&type](const GemmTable& table) { return model::to_text(table.type) == type; });
    if (chosen.items.empty()) {
      throw InputError(datasheet.file, "/gemm",
                       "measured GEMMs of " + type + ", or what they are alike", "");
    }
    fit_gemm(chosen, type, datasheet.collective.has_value(), result);
  }
  for (const auto& [type, likeness] : datasheet.gemm) {
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
  }
}

/// One kind of kernel that moves memory; eager elementwise operators also tell the launch cost.
void fit_streaming_kind(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                        const std::string& kind, Fit& result) {
  const auto chosen = choose(measurements, datasheet, &Measurements::streaming,
                             [&kind](const StreamingTable& table) { return table.kind == kind; });
  if (chosen.items.empty()) {
    throw InputError(datasheet.file, "/streaming",
                     "measured times of " + kind + ", or what it is alike", "");
  }
  const Seconds host_time = fit_streaming(chosen, kind, result);
  if (kind != "elementwise" || host_time == Seconds{}) return;
  result.profile.launch = {
      .value = rounded(host_time),
      .provenance = chosen.same_architecture ? cost::Provenance::fitted : cost::Provenance::assumed,
      .source = "host time of an operator and an event record, an upper bound: " +
                chosen.source("eager times"),
      .error = 0};
}

/// Every kind of kernel that moves memory: fitted, or like another one.
void fit_streaming_kinds(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                         Fit& result) {
  for (const std::string& kind : cost::streaming_kinds()) {
    if (!datasheet.streaming.contains(kind))
      fit_streaming_kind(measurements, datasheet, kind, result);
  }
  if (datasheet.launch) result.profile.launch = *datasheet.launch;
  if (result.profile.launch.source.empty()) {
    throw InputError(datasheet.file, "/measurements",
                     "eager elementwise times, for the launch cost", "none");
  }
  auto& streaming = result.profile.streaming;
  for (const auto& [kind, likeness] : datasheet.streaming) {
    const auto original = streaming.find(likeness.as);
    if (original == streaming.end()) {
      throw InputError(datasheet.file, "/streaming/" + kind + "/as", "a kind that was fitted",
                       likeness.as);
    }
    copy_evidence(result.profile, likeness.as, kind);
    streaming[kind] = as_another(likeness, original->second);
  }
}

/// Constants of NCCL's model, where this architecture was measured: another's link speeds and
/// protocols would not do.
void fit_nccl(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
              Fit& result) {
  for (const Measurements& from : measurements) {
    if (from.device.architecture != datasheet.architecture) continue;
    for (const NcclTable& table : from.nccl_all_reduces) {
      const NcclFit found = calibrate::fit_nccl(table);
      const cost::NcclConstants& values = found.constants;
      const auto constant = [&](auto value) {
        return cost::Constant<decltype(value)>{
            .value = rounded(value),
            .provenance = cost::Provenance::fitted,
            .source = "fitted to " + std::to_string(found.estimate.log_ratios.size()) +
                      " all-reduce times on " + from.device.gpu + " (" + from.source +
                      ") with NCCL " + table.version + "'s model",
            .error = rounded(found.estimate.cross_validated_error, 2)};
      };
      result.profile.collective.nccl = {.added = constant(values.added.value),
                                        .latency_factor = constant(values.latency_factor.value),
                                        .bandwidth_factor = constant(values.bandwidth_factor.value),
                                        .copy = constant(values.copy.value)};
      note(result, "nccl all_reduce", from.device.gpu + " (" + from.source + ")", true,
           found.estimate, found.judgement);
    }
  }
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

void fit_collectives(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                     Fit& result) {
  if (datasheet.collective) {
    result.profile.collective = *datasheet.collective;
    return take_times(measurements, result);
  }
  const auto all_reduces = choose(measurements, datasheet, &Measurements::all_reduces,
                                  [](const AllReduceTable&) { return true; });
  if (all_reduces.items.empty()) {
    throw InputError(datasheet.file, "/measurements",
                     "a file with a table of the kind \"all_reduce\"", "none");
  }
  fit_collective(all_reduces, result);
  cost::CollectiveConstants& collective = result.profile.collective;
  collective.network_efficiency = datasheet.network_efficiency;
  collective.pcie_efficiency = datasheet.pcie_efficiency;
  collective.network_step = datasheet.network_step;
  collective.compute_slowdown = datasheet.compute_slowdown;
}

}  // namespace

Fit fit_profile(const std::vector<Measurements>& measurements, const Datasheet& datasheet) {
  Fit result;
  result.profile = {.name = datasheet.name,
                    .gpu = datasheet.gpu,
                    .multiprocessors = datasheet.multiprocessors,
                    .peak = datasheet.peak,
                    .memory = datasheet.memory,
                    .memory_bandwidth = datasheet.memory_bandwidth,
                    .attention = datasheet.attention,
                    .kernel_floor = kernel_floor(measurements, datasheet),
                    .host_copy = datasheet.host_copy,
                    .host_memory_bandwidth = datasheet.host_memory_bandwidth,
                    .context = datasheet.context,
                    .communicator = datasheet.communicator};
  fit_gemms(measurements, datasheet, result);
  fit_streaming_kinds(measurements, datasheet, result);
  fit_collectives(measurements, datasheet, result);
  fit_nccl(measurements, datasheet, result);
  return result;
}

Fit fit_profile(const Datasheet& datasheet) {
  std::vector<Measurements> measurements;
  for (const std::string& file : datasheet.measurements)
    measurements.push_back(read_measurements(file));
  return fit_profile(measurements, datasheet);
}

const cost::Evidence* evidence_of(const Fit& fit, const Quality& quality) {
  const auto found = fit.profile.evidence.find(quality.what);
  return found == fit.profile.evidence.end() ? nullptr : &found->second;
}

std::string describe(const Fit& fit) {
  std::string text =
      "                                    |predicted / measured - 1|, %\n"
      "what                  points  median  5 folds  families  left out: median  90th  95th\n";
  for (const Quality& quality : fit.qualities) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%-20s  %6zu  %6.1f  %7.1f", quality.what.c_str(),
                  quality.points, 100 * quality.median_error, 100 * quality.cross_validated_error);
    text += line.data();
    if (const cost::Evidence* found = evidence_of(fit, quality);
        found != nullptr && found->all.fit.points > 0) {
      const cost::Evidence& evidence = *found;
      std::snprintf(line.data(), line.size(), "  %8zu", evidence.families);
      text += line.data();
      std::snprintf(line.data(), line.size(), "  %16.1f  %4.0f  %4.0f",
                    100 * evidence.all.fit.median, 100 * evidence.all.fit.p90,
                    100 * evidence.all.fit.p95);
      text += line.data();
    }
    text += "\n";
  }
  return text;
}

void write_profile(const cost::Profile& profile, const std::string& file) {
  std::ofstream out(file);
  out << cost::to_json(profile).text(2) << '\n';
  out.close();
  if (!out) throw InputError(file, "", "a file that can be written", "");
}

}  // namespace stratagem::calibrate

// Four constants by least squares; errors by numbers of ranks.
#include "calibrate/fit/nccl.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"
#include "topology/presets.hpp"

namespace stratagem::calibrate {
namespace {

constexpr auto fitted_kind = cost::CollectiveKind::all_reduce;

bool fitted(const NcclTable& table, int ranks) {
  return std::ranges::find(table.fitted_ranks, ranks) != table.fitted_ranks.end();
}

cost::NcclConstants constants_of(const std::vector<double>& values) {
  cost::NcclConstants constants;
  constants.added.value = Seconds{values[0]};
  constants.latency_factor.value = values[1];
  constants.bandwidth_factor.value = values[2];
  constants.copy.value = BytesPerSecond{values[3]};
  return constants;
}

NcclErrors summary_of(std::vector<double> errors) {
  std::ranges::sort(errors);
  const std::size_t middle = errors.size() / 2;
  if (errors.empty()) return {};
  const double median =
      errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  return {.points = errors.size(), .median = median, .worst = errors.back()};
}

MeasuredPoint measured_point(const NcclPoint& point) {
  const std::string ranks = std::to_string(point.ranks) + " ranks";
  return {.family = ranks,
          .shape = to_text(point.size) + " on " + ranks,
          .size = point.size.value,
          .ranks = point.ranks,
          .time = point.time};
}

template <typename... Values>
std::string line(const char* format, Values... values) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

}  // namespace

bool power_of_two(Bytes size) {
  const double power = std::log2(size.value);
  return power == std::floor(power);
}

topology::Cluster server_named(const std::string& name) {
  const auto found = std::ranges::find(topology::presets(), name, &topology::Preset::name);
  if (found == topology::presets().end())
    throw InputError("", "/tables", "the name of a cluster preset", name);
  topology::Cluster cluster = found->build(1);
  if (cluster.design().on_processors())
    throw InputError("", "/tables", "a cluster preset with GPUs", name);
  return cluster;
}

NcclPredictor::NcclPredictor(const NcclTable& table)
    : cluster_(server_named(table.cluster)),
      constants_(cost::nccl::constants_of(table.version)),
      communicators_(cluster_, constants_) {}

const NcclPredictor::Estimates& NcclPredictor::estimates_of(int ranks) {
  const auto found = known_.find(ranks);
  if (found != known_.end()) return found->second;
  if (ranks > cluster_.gpus())
    throw InputError("", "/tables",
                     "collectives of at most the " + std::to_string(cluster_.gpus()) +
                         " GPUs of a " + cluster_.design().name,
                     std::to_string(ranks) + " ranks");
  std::vector<int> gpus(ranks);
  std::iota(gpus.begin(), gpus.end(), 0);
  const cost::nccl::Communicator communicator = communicators_.of(gpus);
  return known_
      .emplace(ranks, Estimates{communicator,
                                cost::nccl::estimates(fitted_kind, communicator, constants_)})
      .first->second;
}

Seconds NcclPredictor::predict(const NcclPoint& point,
                               const std::optional<cost::NcclConstants>& constants) {
  const Estimates& known = estimates_of(point.ranks);
  const auto chosen =
      cost::nccl::choose(known.estimates, fitted_kind, point.size, known.communicator);
  const double nvlink = constants ? constants->bandwidth_factor.value : 1;
  const auto now = cost::nccl::corrected(chosen, known.communicator, constants, nvlink);
  return now.latency + point.size / now.bandwidth;
}

NcclFit fit_nccl(const NcclTable& table) {
  std::vector<NcclPoint> points;
  std::vector<NcclPoint> others;
  for (const NcclPoint& point : table.points) {
    if (power_of_two(point.size)) (fitted(table, point.ranks) ? points : others).push_back(point);
  }
  std::vector<std::uint64_t> groups(points.size());
  std::iota(groups.begin(), groups.end(), 0);
  NcclPredictor predictor(table);
  // Starts: a launch and its wait; the published constants; memory that is read and written once.
  const std::vector<Parameter> parameters{{"added", Range::positive, 15e-6, 1},
                                          {"latency_factor", Range::positive, 1, 0.7},
                                          {"bandwidth_factor", Range::positive, 1, 0.3},
                                          {"copy", Range::positive, 1e12, 1}};
  const auto log_ratio = [&](std::size_t i, const std::vector<double>& values) {
    return std::log(predictor.predict(points[i], constants_of(values)) / points[i].time);
  };
  const Estimate estimate = fit(parameters, groups, log_ratio);
  std::vector<MeasuredPoint> measured;
  for (const NcclPoint& point : points) measured.push_back(measured_point(point));
  NcclFit result{.constants = constants_of(estimate.values),
                 .estimate = estimate,
                 .judgement = judge(parameters, estimate, measured, log_ratio)};
  for (const NcclPoint& point : others) {
    const double ratio = predictor.predict(point, result.constants) / point.time;
    result.judgement.points.push_back(
        {.point = measured_point(point), .fitted = ratio, .unseen = ratio, .constant = {}});
  }
  return result;
}

double over_efficiency(double factor, const std::string& preset, double nvlink_efficiency) {
  return factor * cost::nccl::nvlink_share(server_named(preset).design()) / nvlink_efficiency;
}

std::map<int, NcclErrors> judge_nccl(const NcclTable& table,
                                     const std::optional<cost::NcclConstants>& constants) {
  NcclPredictor predictor(table);
  std::map<int, std::vector<double>> errors;
  for (const NcclPoint& point : table.points) {
    if (!power_of_two(point.size)) continue;
    const double error = std::abs(predictor.predict(point, constants) / point.time - 1);
    errors[point.ranks].push_back(error);
    if (!fitted(table, point.ranks)) errors[0].push_back(error);
  }
  std::map<int, NcclErrors> result;
  for (const auto& [ranks, list] : errors) result[ranks] = summary_of(list);
  return result;
}

std::string describe_nccl(const NcclTable& table) {
  const cost::NcclConstants constants = fit_nccl(table).constants;
  NcclPredictor predictor(table);
  std::string text =
      table.cluster + ", NCCL " + table.version + ": added " + to_text(constants.added.value) +
      line(", latency x %.4g, bandwidth x %.4g, copy %.4g GB/s\n", constants.latency_factor.value,
           constants.bandwidth_factor.value, constants.copy.value / 1_GBps) +
      "predicted over measured, % (* fitted), payloads in MiB\nGPUs   ";
  std::set<double> sizes;
  for (const NcclPoint& point : table.points) {
    if (power_of_two(point.size)) sizes.insert(point.size / 1_MiB);
  }
  for (const double size : sizes) text += line("%6.0f", size);
  text += "  median  worst  uncorrected";
  const auto judged = judge_nccl(table, constants);
  const auto plain = judge_nccl(table, std::nullopt);
  for (const auto& [ranks, errors] : judged) {
    if (ranks == 0) continue;
    text += line("\n%4d%s  ", ranks, fitted(table, ranks) ? "*" : " ");
    for (const NcclPoint& point : table.points) {
      if (point.ranks == ranks && power_of_two(point.size))
        text += line("%+6.1f", 100 * (predictor.predict(point, constants) / point.time - 1));
    }
    text += line("  %6.1f %6.1f  %6.1f", 100 * errors.median, 100 * errors.worst,
                 100 * plain.at(ranks).median);
  }
  const auto rest = judged.find(0);
  if (rest == judged.end()) return text + "\nall fitted\n";
  return text + line("\nnot fitted: %zu points, median %.1f %%, worst %.1f %%\n",
                     rest->second.points, 100 * rest->second.median, 100 * rest->second.worst);
}

}  // namespace stratagem::calibrate

// Makes a datasheet of what was measured of a processor.
#include "calibrate/fit/processor.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/input_error.hpp"
#include "base/median.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "calibrate/fit/pace.hpp"

namespace stratagem::calibrate {
namespace {

using cost::Provenance;

template <typename T>
cost::Constant<T> assumed(T value, const std::string& why) {
  return {.value = value, .provenance = Provenance::assumed, .source = why};
}

/// Of the formula, which stands where no times were measured: between servers, and within one if it
/// was one rank that measured.
cost::CollectiveConstants unmeasured_collectives() {
  const std::string why = "not measured: calibrate measure times collectives within a server";
  cost::CollectiveConstants result;
  result.nvlink_efficiency = result.network_efficiency = result.pcie_efficiency = assumed(0.8, why);
  result.memory_efficiency = assumed(0.25, why + "; a message is written and read twice");
  result.base = result.node_step = result.network_step = assumed(Seconds{10e-6}, why);
  const std::string host = "of the preset cpu-host, ";
  result.node_link_latency = assumed(300_ns, host + "two shares of memory and a socket link");
  result.network_link_latency = assumed(
      1.6_us, host + "two ports, and a share of memory, a socket or PCIe link at either end");
  return result;
}

/// The most that any kernel moved in a second.
BytesPerSecond fastest(const std::vector<StreamingTable>& tables) {
  BytesPerSecond most;
  for (const StreamingTable& table : tables) {
    for (const StreamingPoint& point : table.points)
      most = std::max(most, point.bytes / point.time);
  }
  return most;
}

/// The same rates for all: shares are of the rates of their own file, and the profile has one rate.
/// Of products the median. Of memory the most that a sum or a kernel reached, since no share is
/// above 1: where others use the memory, too, a sum that was timed once may have been a third
/// slower than most kernels.
void give_common_rates(std::vector<Measurements>& measurements) {
  std::map<std::string, std::vector<double>> peaks;
  BytesPerSecond bandwidth;
  const std::string& processor = measurements.front().device.gpu;
  for (const Measurements& from : measurements) {
    if (from.device.gpu != processor)
      throw InputError(from.file, "/device/gpu", "\"" + processor + "\", as in the file before",
                       "\"" + from.device.gpu + "\"");
    for (const auto& [type, peak] : from.device.peak) peaks[type].push_back(peak.value);
    bandwidth = std::max({bandwidth, from.device.memory_bandwidth, fastest(from.streaming)});
  }
  for (Measurements& from : measurements) {
    for (auto& [type, peak] : from.device.peak) peak = FlopsPerSecond{median(peaks.at(type))};
    from.device.memory_bandwidth = bandwidth;
  }
}

}  // namespace

Datasheet datasheet_of_processor(const Measurements& m, const std::string& name) {
  if (!m.device.memory || m.origin.status != "measured" ||
      !m.origin.source.starts_with("stratagem calibrate measure --backend cpu"))
    throw InputError(m.file, "/device",
                     "measurements of `calibrate measure --backend cpu`; others want --datasheet",
                     "");
  const std::string how = m.origin.source + " on " + m.origin.host + ", " + m.origin.date;
  const auto measured = [&](auto value, const std::string& what) {
    return cost::Constant<decltype(value)>{
        .value = value, .provenance = Provenance::measured, .source = what + ", " + how};
  };
  const std::string no_gpu = "a processor: nothing is copied, launched or reserved beside it";
  Datasheet sheet;
  sheet.file = m.file;
  sheet.name = name;
  sheet.gpu = m.device.gpu;
  sheet.architecture = m.device.architecture;
  sheet.multiprocessors = measured(m.device.multiprocessors, "one core of each rank was timed");
  for (const auto& [type, peak] : m.device.peak)
    sheet.peak[type] = measured(peak, "rate of a product of 1536 x 1536 x 1536");
  sheet.memory.size = measured(*m.device.memory, "what the system has, for all ranks together");
  sheet.memory.bandwidth = measured(
      m.device.memory_bandwidth, "the fastest of a sum beyond the caches and what kernels moved");
  sheet.host.copy = {.latency = assumed(Seconds{}, no_gpu),
                     .bandwidth = assumed(m.device.memory_bandwidth, no_gpu)};
  sheet.memory.context = assumed(Bytes{}, no_gpu);
  sheet.processor = {.kernel_floor = assumed(Seconds{}, no_gpu),
                     .launch = assumed(Seconds{}, no_gpu),
                     .collective = unmeasured_collectives()};
  return sheet;
}

Fit fit_processor(std::vector<Measurements> measurements, const std::string& name) {
  expects(!measurements.empty(), "a profile is of measurements");
  const std::optional<Seconds> pace = common_pace(measurements);
  if (pace) measurements = at_pace(std::move(measurements), *pace);
  give_common_rates(measurements);
  Datasheet sheet = datasheet_of_processor(measurements.front(), name);
  if (measurements.size() > 1) {
    const std::string of_all = " (the first of " + std::to_string(measurements.size()) + " files)";
    for (auto& [type, peak] : sheet.peak) peak.source += of_all + ", the median of all";
    sheet.memory.bandwidth.source += of_all + ", the most of all";
  }
  Fit fit = fit_profile(measurements, sheet);
  if (pace) {
    fit.profile.pace = {.value = *pace,
                        .provenance = Provenance::measured,
                        .source = "median of what the yardstick took while kernels were timed"};
  }
  return fit;
}

}  // namespace stratagem::calibrate

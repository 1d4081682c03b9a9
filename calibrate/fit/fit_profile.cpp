// Assembles a profile from the fits of all kinds.
#include "calibrate/fit/fit_profile.hpp"

#include <optional>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "base/median.hpp"
#include "base/write_file.hpp"
#include "calibrate/fit/attention.hpp"
#include "calibrate/fit/chosen.hpp"
#include "calibrate/fit/collectives.hpp"
#include "calibrate/fit/gemm.hpp"
#include "calibrate/fit/streaming.hpp"

namespace stratagem::calibrate {
namespace {

/// The median of times of the datasheet's architecture or of all others', from the first file that
/// has any; files that only stand in come last. None: no file has.
std::optional<cost::Constant<Seconds>> first_times(const std::vector<Measurements>& measurements,
                                                   const Datasheet& datasheet, bool same,
                                                   std::vector<Seconds> Measurements::*times,
                                                   const std::string& what) {
  for (const bool stands_in : {false, true}) {
    for (const Measurements& from : measurements) {
      if ((from.*times).empty() || from.stands_in != stands_in ||
          (from.device.architecture == datasheet.architecture) != same)
        continue;
      std::vector<double> values;
      for (const Seconds time : from.*times) values.push_back(time.value);
      const bool measured = from.origin.status == "measured";
      return cost::Constant<Seconds>{.value = rounded(Seconds{median(values)}),
                                     .provenance = !same      ? cost::Provenance::assumed
                                                   : measured ? cost::Provenance::measured
                                                              : cost::Provenance::published,
                                     .source = (same ? "" : "another architecture's, ") + what +
                                               " on " + from.device.gpu + " (" +
                                               from.origin.source + ")"};
    }
  }
  return std::nullopt;
}

cost::Constant<Seconds> kernel_floor(const std::vector<Measurements>& measurements,
                                     const Datasheet& datasheet) {
  if (datasheet.processor) return datasheet.processor->kernel_floor;
  for (const bool same : {true, false}) {
    if (const auto gap = first_times(measurements, datasheet, same, &Measurements::kernel_gaps,
                                     "kernels back to back"))
      return *gap;
  }
  throw InputError(datasheet.file, "/measurements",
                   "a file with a table of the kind \"kernel_gap\"", "none");
}

/// Numbers of ranks that were busy on a processor while its kernels were measured.
std::vector<int> busy_ranks(const std::vector<Measurements>& measurements,
                            const Datasheet& datasheet) {
  std::set<int> numbers;
  for (const Measurements& from : measurements) {
    const bool kernels = !from.gemms.empty() || !from.streaming.empty();
    if (kernels && from.device.architecture == datasheet.architecture)
      numbers.insert(from.ranks_of_server());
  }
  return {numbers.begin(), numbers.end()};
}

}  // namespace

Fit fit_profile(const std::vector<Measurements>& measurements, const Datasheet& datasheet) {
  Fit result;
  cost::Profile& profile = result.profile;
  profile.name = datasheet.name;
  profile.gpu = datasheet.gpu;
  profile.multiprocessors = datasheet.multiprocessors;
  profile.peak = datasheet.peak;
  profile.memory = datasheet.memory;
  profile.kernels.attention = datasheet.attention;
  profile.kernels.floor = kernel_floor(measurements, datasheet);
  profile.launch_queue = datasheet.launches.queue;
  profile.speed_spread = datasheet.speed_spread;
  profile.host_copy = datasheet.host.copy;
  profile.host_memory_bandwidth = datasheet.host.memory_bandwidth;
  if (datasheet.launches.time) profile.launch = *datasheet.launches.time;
  if (const auto launch = first_times(measurements, datasheet, true, &Measurements::host_launches,
                                      "host time of a launch"))
    profile.launch = *launch;
  fit_gemms(measurements, datasheet, result);
  fit_streaming_kinds(measurements, datasheet, result);
  fit_attention(measurements, datasheet, result);
  fit_collectives(measurements, datasheet, result);
  if (result.profile.of_processor())
    result.profile.busy_ranks = busy_ranks(measurements, datasheet);
  return result;
}

Fit fit_profile(const Datasheet& datasheet) { return fit_completed({}, datasheet); }

Fit fit_completed(std::vector<Measurements> measurements, const Datasheet& datasheet) {
  const bool stand_in = !measurements.empty();
  std::string own;  // the GPU's, as it calls itself
  if (stand_in && measurements.front().origin.status == "measured" &&
      measurements.front().device.architecture == datasheet.architecture)
    own = measurements.front().device.gpu;
  for (const std::string& file : datasheet.measurements) {
    measurements.push_back(read_measurements(file));
    measurements.back().stands_in = stand_in;
  }
  Fit result = fit_profile(measurements, datasheet);
  if (!own.empty()) result.profile.gpu = own;
  return result;
}

void write_profile(const cost::Profile& profile, const std::string& file) {
  write_file(file, cost::to_json(profile).text(2) + "\n");
}

}  // namespace stratagem::calibrate

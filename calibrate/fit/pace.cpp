// Scales points of kernels by the pace at which they were measured.
#include "calibrate/fit/pace.hpp"

#include "base/input_error.hpp"
#include "base/median.hpp"

namespace stratagem::calibrate {
namespace {

/// False where a point has none.
template <typename Table>
bool collect(const std::vector<Table>& tables, std::vector<double>& paces) {
  for (const Table& table : tables) {
    for (const auto& point : table.points) {
      if (!point.pace) return false;
      paces.push_back(point.pace->value);
    }
  }
  return true;
}

template <typename Table>
void scale(std::vector<Table>& tables, Seconds pace) {
  for (Table& table : tables) {
    for (auto& point : table.points) {
      expects(point.pace.has_value(), "every kernel has a pace");
      point.time = at_pace(point.time, *point.pace, pace);
      point.pace = pace;
    }
  }
}

void scale(Device& device, Seconds pace) {
  expects(device.pace.has_value(), "rates have a pace");
  const double faster = *device.pace / pace;
  for (auto& [type, peak] : device.peak) peak = faster * peak;
  device.memory_bandwidth = faster * device.memory_bandwidth;
  device.pace = pace;
}

}  // namespace

Seconds at_pace(Seconds time, Seconds then, Seconds pace) { return pace / then * time; }

std::optional<Seconds> common_pace(const std::vector<Measurements>& measurements) {
  std::vector<double> paces;
  for (const Measurements& from : measurements) {
    if (!from.device.pace || !collect(from.gemms, paces) || !collect(from.streaming, paces))
      return std::nullopt;
  }
  if (paces.empty()) return std::nullopt;
  return Seconds{median(paces)};
}

std::vector<Measurements> at_pace(std::vector<Measurements> measurements, Seconds pace) {
  for (Measurements& from : measurements) {
    scale(from.gemms, pace);
    scale(from.streaming, pace);
    scale(from.device, pace);
  }
  return measurements;
}

}  // namespace stratagem::calibrate

// Every table's points carry the pace that they were measured at.
#include "calibrate/pace.hpp"

#include "base/median.hpp"

namespace stratagem::calibrate {
namespace {

template <typename Table>
void collect(const std::vector<Table>& tables, std::vector<double>& paces) {
  for (const Table& table : tables) {
    for (const auto& point : table.points)
      if (point.pace) paces.push_back(point.pace->value);
  }
}

template <typename Table>
void scale(std::vector<Table>& tables, Seconds pace) {
  for (Table& table : tables) {
    for (auto& point : table.points) {
      if (!point.pace) continue;
      point.time = at_pace(point.time, *point.pace, pace);
      point.pace = pace;
    }
  }
}

void scale(Device& device, Seconds pace) {
  if (!device.pace) return;
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
    collect(from.gemms, paces);
    collect(from.streaming, paces);
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

// Looks for straight lines, and for lines that begin again.
#include "strategies/language/device_formula.hpp"

namespace stratagem::strategies {
namespace {

using Devices = std::vector<std::optional<int>>;

std::string times(int factor, const std::string& variable) {
  return factor == 1 ? variable : std::to_string(factor) + "*" + variable;
}

/// The end of the straight line that begins at a stage.
int end_of_line(const Devices& devices, int first, int end) {
  int last = first + 1;
  if (last >= end || !devices[last]) return last;
  const int step = *devices[last] - *devices[first];
  while (last + 1 < end && devices[last + 1] && *devices[last + 1] - *devices[last] == step) ++last;
  return last + 1;
}

/// The line through the stages `first` and `first` + 1, `variable` being i or a function of it.
std::string line(const Devices& devices, int first, const std::string& variable) {
  const auto stages = static_cast<int>(devices.size());
  const int step = *devices[first + 1] - *devices[first];
  const int at_zero = *devices[first] - step * first;
  if (step == 0) return std::to_string(at_zero);
  if (step < 0 && at_zero == -step * (stages - 1)) {
    const std::string from_end = "S-1-" + variable;
    return step == -1 ? from_end : times(-step, "(" + from_end + ")");
  }
  if (step < 0) return std::to_string(at_zero) + "-" + times(-step, variable);
  const std::string shift = at_zero == 0 ? "" : (at_zero > 0 ? "+" : "") + std::to_string(at_zero);
  return times(step, variable) + shift;
}

/// A line of some stages that the others repeat.
std::optional<DeviceFormula> repeated_line(const Devices& devices) {
  const auto stages = static_cast<int>(devices.size());
  if (stages < 2 || !devices[0]) return std::nullopt;
  const int period = end_of_line(devices, 0, stages);
  for (int i = 0; i < stages; ++i) {
    if (!devices[i] || devices[i] != devices[i % period]) return std::nullopt;
  }
  const std::string variable = period == stages ? "i" : "(i % " + std::to_string(period) + ")";
  return DeviceFormula{
      .first = 0, .last = stages - 1, .device = *devices[0], .formula = line(devices, 0, variable)};
}

}  // namespace

std::vector<DeviceFormula> device_formulas(const Devices& devices) {
  if (const auto all = repeated_line(devices)) return {*all};
  const auto stages = static_cast<int>(devices.size());
  std::vector<DeviceFormula> result;
  for (int first = 0; first < stages; ++first) {
    if (!devices[first]) continue;
    const int last = end_of_line(devices, first, stages) - 1;
    DeviceFormula one{.first = first, .last = first, .device = *devices[first], .formula = ""};
    if (last - first >= 2) {
      one.last = last;
      one.formula = line(devices, first, "i");
    }
    result.push_back(one);
    first = one.last;
  }
  return result;
}

}  // namespace stratagem::strategies

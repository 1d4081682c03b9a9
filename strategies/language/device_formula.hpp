// Arithmetic that tells on which devices stages stand, for printing plans: "4*i", "2*(S-1-i)".
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stratagem::strategies {

/// Stage i stands on `formula`, for i from `first` to `last`.
struct DeviceFormula {
  int first = 0;
  int last = 0;
  int device = 0;  ///< of the first
  std::string formula;
};

/// As few formulas as are easily found: one of i or of i % n for all stages, else one for each
/// straight line of at least three. `devices` is by stage; stages without one are left out.
std::vector<DeviceFormula> device_formulas(const std::vector<std::optional<int>>& devices);

}  // namespace stratagem::strategies

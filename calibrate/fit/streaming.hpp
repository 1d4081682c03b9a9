// Constants of kernels that move memory.
#pragma once

#include <vector>

#include "calibrate/datasheet.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// Every kind of kernel that moves memory: fitted, or like another one; and the launch cost. Throws
/// InputError where one is neither.
void fit_streaming_kinds(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                         Fit& result);

}  // namespace stratagem::calibrate

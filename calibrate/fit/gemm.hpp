// Constants of matrix products.
#pragma once

#include <vector>

#include "calibrate/datasheet.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// Every data type that the datasheet's GPU has a peak for: fitted to measured products, or like
/// another one. Throws InputError where it is neither.
void fit_gemms(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
               Fit& result);

}  // namespace stratagem::calibrate

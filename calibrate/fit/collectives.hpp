// Constants of collectives.
#pragma once

#include <vector>

#include "calibrate/datasheet.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// Of ranks on processors the times as they are, of GPUs the formula and, where this architecture
/// was measured, what is added to NCCL's own prediction. Throws InputError where nothing was
/// measured.
void fit_collectives(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                     Fit& result);

}  // namespace stratagem::calibrate

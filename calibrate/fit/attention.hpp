// Fits the constants of fused attention.
#pragma once

#include <vector>

#include "calibrate/datasheet.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// Fits what each implementation reaches with heads of each size, if both passes were measured on
/// this architecture, in fp16 or bf16; else the datasheet's constants stay. Call it after the
/// kernel floor and the kinds that move memory are fitted.
void fit_attention(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                   Fit& result);

}  // namespace stratagem::calibrate

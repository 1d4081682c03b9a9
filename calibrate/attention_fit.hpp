// Constants of fused attention.
#pragma once

#include <vector>

#include "calibrate/fit.hpp"

namespace stratagem::calibrate {

/// The share of the peak of either pass, where this architecture was measured in fp16 or bf16; else what
/// the datasheet says stays. After the kernel floor and the kinds that move memory.
void fit_attention(const std::vector<Measurements>& measurements, const Datasheet& datasheet,
                   Fit& result);

}  // namespace stratagem::calibrate

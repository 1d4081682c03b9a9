// `calibrate measure --backend cuda`: times a GPU's kernels, and writes what it found as it goes.
#pragma once

#include <functional>
#include <string>

#include "calibrate/measure/measure.hpp"

namespace stratagem::calibrate {

/// Measures the first GPU in fp16, bf16 where it has it, and fp32. `file` gets products, kernels
/// that move memory and the gap between kernels, for `calibrate fit`; beside it NAME.more.json gets
/// what no fit reads: fused attention, copies to and from the host, the host's time for a launch.
/// Shares are taken of the rates of `datasheet`, or, if that is "", of the rates of a large product
/// and a large sum. Both files are written anew after every experiment; a killed run begins again.
/// Throws InputError for files that cannot be read or written, DeviceError for a GPU that fails or
/// is not there. Returns how many experiments were run.
std::size_t measure_cuda(const std::string& file, const std::string& datasheet, Sweep sweep,
                         const std::function<void(const Progress&)>& tell);

}  // namespace stratagem::calibrate

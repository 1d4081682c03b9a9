// Scales times of a core to what they would be at one pace.
#pragma once

#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {

/// A time that was measured while kernels/core_speed.hpp measured `then`, as it would be at `pace`:
/// all that a core does speeds up and slows down alike.
Seconds at_pace(Seconds time, Seconds then, Seconds pace);

/// The median over all kernels; nullopt where not all of them, and the rates of devices, say at
/// which pace they were measured, as of GPUs, whose clocks are their own.
std::optional<Seconds> common_pace(const std::vector<Measurements>& measurements);

/// Kernels' times and the rates of devices at that pace. Times of collectives stay as they are: two
/// cores and the memory between them take part in those. Expects paces of all others.
std::vector<Measurements> at_pace(std::vector<Measurements> measurements, Seconds pace);

}  // namespace stratagem::calibrate

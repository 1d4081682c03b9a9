// Tests whether all elements of a list are finite.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// In fp32, fp64, fp16 or bf16.
template <typename T>
bool all_finite(In<T> x);

/// Writes 1 to the one element of `found` if there is an infinity or what is no number, and leaves
/// it alone otherwise.
template <typename T>
void find_not_finite(const Stream& stream, DeviceIn<T> x, DeviceOut<std::int8_t> found);

}  // namespace stratagem::kernels

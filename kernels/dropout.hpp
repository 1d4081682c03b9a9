// Dropout whose choices depend on an element's place in the whole tensor only.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"
#include "kernels/part.hpp"
#include "kernels/philox.hpp"

namespace stratagem::kernels {

/// y = x / (1 - probability) where the element is kept, else 0; `mask` is 1 or 0. Operands are the
/// part of a tensor; element i of the whole draws number i of `random`, so that any division of the
/// tensor drops the same elements. 0 <= probability < 1.
template <typename T>
void dropout(const Part& part, double probability, const RandomStream& random, In<T> x, Out<T> y,
             Out<std::int8_t> mask);
/// Throws BrokenPromise for a part of more than eight dimensions.
template <typename T>
void dropout(const Stream& stream, const Part& part, double probability, const RandomStream& random,
             DeviceIn<T> x, DeviceOut<T> y, DeviceOut<std::int8_t> mask);

/// Gradient of x: that of y / (1 - probability) where the element was kept.
template <typename T>
void dropout_gradient(double probability, In<T> dy, In<std::int8_t> mask, Out<T> dx);
template <typename T>
void dropout_gradient(const Stream& stream, double probability, DeviceIn<T> dy,
                      DeviceIn<std::int8_t> mask, DeviceOut<T> dx);

}  // namespace stratagem::kernels

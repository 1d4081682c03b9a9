// Rotary positions: turns pairs of a head's elements by an angle that grows with the position.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// Heads one after another, each (sequence, size), of which the sequence begins at place `first`.
struct Rotary {
  std::int64_t heads = 0;
  std::int64_t sequence = 0;
  std::int64_t size = 0;  ///< even
  std::int64_t first = 0;
  double base = 10000;
};

/// y of elements i and i + size/2 of the row at place p: the pair of x turned by
/// p * base^(-2i/size). Su et al., RoFormer, arXiv:2104.09864, section 3.2.2, with the pairs of the
/// Llama models. Throws BrokenPromise for an odd size.
template <typename T>
void rotary(const Rotary& shape, In<T> x, Out<T> y);
template <typename T>
void rotary(const Stream& stream, const Rotary& shape, DeviceIn<T> x, DeviceOut<T> y);

/// Gradient of x: that of y turned back.
template <typename T>
void rotary_gradient(const Rotary& shape, In<T> dy, Out<T> dx);
template <typename T>
void rotary_gradient(const Stream& stream, const Rotary& shape, DeviceIn<T> dy, DeviceOut<T> dx);

}  // namespace stratagem::kernels

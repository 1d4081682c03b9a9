// Softmax of every row, of scaled and causally masked scores too, with its gradient.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// Which keys a query sees: rows are queries first, first + 1, ... `queries` of them, again and
/// again, and the query at place p sees keys 0..p.
struct CausalMask {
  std::int64_t queries = 0;
  std::int64_t first = 0;  ///< place of row 0 in the sequence
};

/// y = softmax(scale * x) along the columns; masked columns get 0. Throws BrokenPromise for a mask
/// whose queries do not divide the rows.
template <typename T>
void softmax(const Rows& shape, double scale, const std::optional<CausalMask>& mask, In<T> x,
             Out<T> y);
template <typename T>
void softmax(const Stream& stream, const Rows& shape, double scale,
             const std::optional<CausalMask>& mask, DeviceIn<T> x, DeviceOut<T> y);

/// Gradient of x from that of y and y itself.
template <typename T>
void softmax_gradient(const Rows& shape, double scale, In<T> dy, In<T> y, Out<T> dx);
template <typename T>
void softmax_gradient(const Stream& stream, const Rows& shape, double scale, DeviceIn<T> dy,
                      DeviceIn<T> y, DeviceOut<T> dx);

}  // namespace stratagem::kernels

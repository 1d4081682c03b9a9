// Copies between arrays whose elements lie at other distances from each other: parts, transposes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// For every index within `sizes`: the element of x at the sum of index * from over all dimensions
/// goes to that of y at the sum of index * to. No element of y is gone to twice.
struct Strided {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> from, to;  ///< distances by dimension, 0 or more

  [[nodiscard]] std::int64_t size() const;
};

/// Dimensions of one element are left out, and neighbours that are as one are one.
Strided merged(const Strided& shape);

/// Writes, or `adds` to what is there. Throws BrokenPromise for a shape that reaches out of x or y.
template <typename T>
void copy_strided(const Strided& shape, bool adds, In<T> x, Out<T> y);

/// Between types too, rounded; T and int8, or from or to float. Throws BrokenPromise for more than
/// eight dimensions when merged.
template <typename From, typename To>
void copy_strided(const Stream& stream, const Strided& shape, bool adds, DeviceIn<From> x,
                  DeviceOut<To> y);

/// Throws BrokenPromise unless x and y have all the elements.
void expect_within(const Strided& shape, std::size_t x, std::size_t y);

}  // namespace stratagem::kernels

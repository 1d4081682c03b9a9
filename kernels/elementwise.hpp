// Sums, products and copies, element by element, and sums over rows.
#pragma once

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// y = a + b.
template <typename T>
void add(In<T> a, In<T> b, Out<T> y);
template <typename T>
void add(const Stream& stream, DeviceIn<T> a, DeviceIn<T> b, DeviceOut<T> y);

/// y = a * b, element by element.
template <typename T>
void multiply(In<T> a, In<T> b, Out<T> y);
template <typename T>
void multiply(const Stream& stream, DeviceIn<T> a, DeviceIn<T> b, DeviceOut<T> y);

/// y = x + bias in every row.
template <typename T>
void bias_add(const Rows& shape, In<T> x, In<T> bias, Out<T> y);
template <typename T>
void bias_add(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceIn<T> bias,
              DeviceOut<T> y);

/// sums (columns) = sum of x over its rows: what a bias receives of its gradient.
template <typename T>
void column_sums(const Rows& shape, In<T> x, Out<T> sums);
template <typename T>
void column_sums(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceOut<T> sums);

/// Every element of y becomes `value`, rounded.
template <typename T>
void fill(const Stream& stream, double value, DeviceOut<T> y);

/// y = x in another type.
template <typename From, typename To>
void cast(In<From> x, Out<To> y);
template <typename From, typename To>
void cast(const Stream& stream, DeviceIn<From> x, DeviceOut<To> y);

}  // namespace stratagem::kernels

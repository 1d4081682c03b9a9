// Sums, products and copies, element by element, and sums over rows.
#pragma once

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// y = a + b.
template <typename T>
void add(In<T> a, In<T> b, Out<T> y);

/// y = a * b, element by element.
template <typename T>
void multiply(In<T> a, In<T> b, Out<T> y);

/// y = x + bias in every row.
template <typename T>
void bias_add(const Rows& shape, In<T> x, In<T> bias, Out<T> y);

/// sums (columns) = sum of x over its rows: what a bias receives of its gradient.
template <typename T>
void column_sums(const Rows& shape, In<T> x, Out<T> sums);

/// y = x in another type.
template <typename From, typename To>
void cast(In<From> x, Out<To> y);

}  // namespace stratagem::kernels

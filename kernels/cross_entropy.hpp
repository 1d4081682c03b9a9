// Cross-entropy in steps whose partial results can be combined where ranks share out the
// vocabulary.
#pragma once

#include <cstdint>

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// maximum (rows) = largest column of each row; parts of the vocabulary combine by maximum.
template <typename T>
void row_maximum(const Rows& shape, In<T> x, Out<T> maximum);

/// y = exp(x - maximum of the row).
template <typename T>
void exponential(const Rows& shape, In<T> x, In<T> maximum, Out<T> y);

/// sums (rows); parts of the vocabulary combine by adding.
template <typename T>
void row_sums(const Rows& shape, In<T> x, Out<T> sums);

/// picked (rows) = x[label - first], 0 where the label is in another part of the vocabulary.
template <typename T>
void pick(const Rows& shape, std::int64_t first, In<T> x, In<std::int64_t> labels, Out<T> picked);

/// loss (rows) = log(sum) + maximum - picked.
template <typename T>
void cross_entropy(In<T> maximum, In<T> sum, In<T> picked, Out<T> loss);

/// Gradient of x: dloss of the row * (exponential / sum - [label is this column]).
template <typename T>
void cross_entropy_gradient(const Rows& shape, std::int64_t first, In<T> dloss, In<T> exponentials,
                            In<T> sum, In<std::int64_t> labels, Out<T> dx);

}  // namespace stratagem::kernels

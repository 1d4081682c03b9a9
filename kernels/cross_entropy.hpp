// Cross-entropy in steps whose partial results can be combined where ranks share out the
// vocabulary.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

// On a GPU what belongs to a whole row is fp32 whatever the type of its columns.

/// maximum (rows) = largest column of each row; parts of the vocabulary combine by maximum.
template <typename T>
void row_maximum(const Rows& shape, In<T> x, Out<T> maximum);
template <typename T>
void row_maximum(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceOut<float> maximum);

/// y = exp(x - maximum of the row).
template <typename T>
void exponential(const Rows& shape, In<T> x, In<T> maximum, Out<T> y);
template <typename T>
void exponential(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceIn<float> maximum,
                 DeviceOut<T> y);

/// sums (rows); parts of the vocabulary combine by adding.
template <typename T>
void row_sums(const Rows& shape, In<T> x, Out<T> sums);
template <typename T>
void row_sums(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceOut<float> sums);

/// picked (rows) = x[label - first], 0 where the label is in another part of the vocabulary.
template <typename T>
void pick(const Rows& shape, std::int64_t first, In<T> x, In<std::int64_t> labels, Out<T> picked);
template <typename T>
void pick(const Stream& stream, const Rows& shape, std::int64_t first, DeviceIn<T> x,
          DeviceIn<std::int64_t> labels, DeviceOut<float> picked);

/// loss (rows) = log(sum) + maximum - picked.
template <typename T>
void cross_entropy(In<T> maximum, In<T> sum, In<T> picked, Out<T> loss);
void cross_entropy(const Stream& stream, DeviceIn<float> maximum, DeviceIn<float> sum,
                   DeviceIn<float> picked, DeviceOut<float> loss);

/// Gradient of x: dloss of the row * (exponential / sum - [label is this column]).
template <typename T>
void cross_entropy_gradient(const Rows& shape, std::int64_t first, In<T> dloss, In<T> exponentials,
                            In<T> sum, In<std::int64_t> labels, Out<T> dx);
template <typename T>
void cross_entropy_gradient(const Stream& stream, const Rows& shape, std::int64_t first,
                            DeviceIn<float> dloss, DeviceIn<T> exponentials, DeviceIn<float> sum,
                            DeviceIn<std::int64_t> labels, DeviceOut<T> dx);

}  // namespace stratagem::kernels

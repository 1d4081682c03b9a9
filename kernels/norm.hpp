// Layer norm and RMS norm of every row, with their gradients.
#pragma once

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// y = (x - mean) * r * scale + shift with r = 1 / sqrt(variance + epsilon), over the columns of
/// each row. `statistics` (rows, 2) gets mean and r. Ba et al., Layer normalization,
/// arXiv:1607.06450.
template <typename T>
void layer_norm(const Rows& shape, double epsilon, In<T> x, In<T> scale, In<T> shift, Out<T> y,
                Out<T> statistics);

/// Gradient of x.
template <typename T>
void layer_norm_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics, In<T> scale,
                         Out<T> dx);

/// Gradient of `scale`; that of `shift` is the sum over rows, column_sums.
template <typename T>
void layer_norm_scale_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics,
                               Out<T> dscale);

/// y = x * r * scale with r = 1 / sqrt(mean of x^2 + epsilon); `statistics` (rows) gets r. Zhang
/// and Sennrich, Root mean square layer normalization, arXiv:1910.07467.
template <typename T>
void rms_norm(const Rows& shape, double epsilon, In<T> x, In<T> scale, Out<T> y, Out<T> statistics);

template <typename T>
void rms_norm_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics, In<T> scale,
                       Out<T> dx);

template <typename T>
void rms_norm_scale_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics, Out<T> dscale);

}  // namespace stratagem::kernels

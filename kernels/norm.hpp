// Layer norm and RMS norm of every row, with their gradients.
#pragma once

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// y = (x - mean) * r * scale + shift with r = 1 / sqrt(variance + epsilon), over the columns of
/// each row. `statistics` (rows, 2) gets mean and r. Ba et al., Layer normalization,
/// arXiv:1607.06450. On a GPU statistics are fp32 whatever the type of the others.
template <typename T>
void layer_norm(const Rows& shape, double epsilon, In<T> x, In<T> scale, In<T> shift, Out<T> y,
                Out<T> statistics);
template <typename T>
void layer_norm(const Stream& stream, const Rows& shape, double epsilon, DeviceIn<T> x,
                DeviceIn<T> scale, DeviceIn<T> shift, DeviceOut<T> y, DeviceOut<float> statistics);

/// Gradient of x.
template <typename T>
void layer_norm_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics, In<T> scale,
                         Out<T> dx);
template <typename T>
void layer_norm_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                         DeviceIn<float> statistics, DeviceIn<T> scale, DeviceOut<T> dx);

/// Gradient of `scale`; that of `shift` is the sum over rows, column_sums.
template <typename T>
void layer_norm_scale_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics,
                               Out<T> dscale);
template <typename T>
void layer_norm_scale_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy,
                               DeviceIn<T> x, DeviceIn<float> statistics, DeviceOut<T> dscale);

/// y = x * r * scale with r = 1 / sqrt(mean of x^2 + epsilon); `statistics` (rows) gets r. Zhang
/// and Sennrich, Root mean square layer normalization, arXiv:1910.07467.
template <typename T>
void rms_norm(const Rows& shape, double epsilon, In<T> x, In<T> scale, Out<T> y, Out<T> statistics);
template <typename T>
void rms_norm(const Stream& stream, const Rows& shape, double epsilon, DeviceIn<T> x,
              DeviceIn<T> scale, DeviceOut<T> y, DeviceOut<float> statistics);

template <typename T>
void rms_norm_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics, In<T> scale,
                       Out<T> dx);
template <typename T>
void rms_norm_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                       DeviceIn<float> statistics, DeviceIn<T> scale, DeviceOut<T> dx);

template <typename T>
void rms_norm_scale_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics, Out<T> dscale);
template <typename T>
void rms_norm_scale_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                             DeviceIn<float> statistics, DeviceOut<T> dscale);

}  // namespace stratagem::kernels

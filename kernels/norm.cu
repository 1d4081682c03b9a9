// Norms on a GPU, a block a row; gradients of scales are sums over rows.
#include "kernels/inside/column_sums.cuh"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/row.cuh"
#include "kernels/norm.hpp"

namespace stratagem::kernels {
namespace {

/// Mean and factor of a row as its statistics have them.
struct Moments {
  float mean, r;
};

template <bool centred>
__device__ Moments moments_of(const float* statistics, std::int64_t row) {
  if constexpr (centred)
    return {statistics[2 * row], statistics[2 * row + 1]};
  else
    return {0.0F, statistics[row]};
}

/// Reads a row twice for its statistics, since a difference of mean squares would cancel, and once
/// more for the result; from the second time on it is in a cache.
template <typename T, bool centred>
__global__ void norm_kernel(Rows shape, float epsilon, bool in_packets, const T* x, const T* scale,
                            const T* shift, T* y, float* statistics) {
  const std::int64_t row = blockIdx.x * shape.columns;
  const auto columns = static_cast<float>(shape.columns);
  float mean = 0;
  if constexpr (centred) {
    for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
      const auto values = load<count()>(x + row + column);
      for (int i = 0; i < count(); ++i) mean += values[i];
    });
    mean = over_block(mean, Add{}) / columns;
  }
  float squares = 0;
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    const auto values = load<count()>(x + row + column);
    for (int i = 0; i < count(); ++i) squares += (values[i] - mean) * (values[i] - mean);
  });
  const float r = 1.0F / sqrtf(over_block(squares, Add{}) / columns + epsilon);
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    auto values = load<count()>(x + row + column);
    const auto factor = load<count()>(scale + column);
    for (int i = 0; i < count(); ++i) values[i] = (values[i] - mean) * r * factor[i];
    if constexpr (centred) {
      const auto added = load<count()>(shift + column);
      for (int i = 0; i < count(); ++i) values[i] += added[i];
    }
    store(values, y + row + column);
  });
  if (threadIdx.x != 0) return;
  if constexpr (centred) statistics[2 * blockIdx.x] = mean;
  statistics[(centred ? 2 : 1) * blockIdx.x + (centred ? 1 : 0)] = r;
}

/// dx = r * (g - m1 - z * m2) with g = dy * scale, z the row as normalised, m2 the mean of g * z
/// and m1 that of g, or 0 where no mean was taken off.
template <typename T, bool centred>
__global__ void norm_gradient_kernel(Rows shape, bool in_packets, const T* dy, const T* x,
                                     const float* statistics, const T* scale, T* dx) {
  const std::int64_t row = blockIdx.x * shape.columns;
  const auto columns = static_cast<float>(shape.columns);
  const Moments of = moments_of<centred>(statistics, blockIdx.x);
  float along = 0, shifted = 0;
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    const auto gradient = load<count()>(dy + row + column), factor = load<count()>(scale + column);
    const auto values = load<count()>(x + row + column);
    for (int i = 0; i < count(); ++i) {
      along += gradient[i] * factor[i] * (values[i] - of.mean) * of.r;
      shifted += gradient[i] * factor[i];
    }
  });
  along = over_block(along, Add{}) / columns;
  shifted = centred ? over_block(shifted, Add{}) / columns : 0.0F;
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    auto gradient = load<count()>(dy + row + column);
    const auto values = load<count()>(x + row + column), factor = load<count()>(scale + column);
    for (int i = 0; i < count(); ++i) {
      const float z = (values[i] - of.mean) * of.r;
      gradient[i] = of.r * (gradient[i] * factor[i] - shifted - z * along);
    }
    store(gradient, dx + row + column);
  });
}

/// What one element gives to the gradient of its column's scale.
template <typename T, bool centred>
struct ScaleGradient {
  const T *dy, *x;
  const float* statistics;
  std::int64_t columns;

  __device__ float operator()(std::int64_t row, std::int64_t column) const {
    const Moments of = moments_of<centred>(statistics, row);
    const std::int64_t at = row * columns + column;
    return widen(dy[at]) * (widen(x[at]) - of.mean) * of.r;
  }
};

template <typename T, bool centred>
void norm(const Stream& stream, const Rows& shape, double epsilon, DeviceIn<T> x, DeviceIn<T> scale,
          DeviceIn<T> shift, DeviceOut<T> y, DeviceOut<float> statistics) {
  expect_type<T>(stream);
  expect_size(shape.size(), x, y);
  expect_size(shape.columns, scale, shift);
  expect_size((centred ? 2 : 1) * shape.rows, statistics);
  if (shape.size() == 0) return;
  const RowLaunch launch = row_launch<T>(shape, x.data(), scale.data(), shift.data(), y.data());
  start_kernel(stream, &norm_kernel<T, centred>, launch.grid, shape, static_cast<float>(epsilon),
               launch.in_packets, x.data(), scale.data(), shift.data(), y.data(),
               statistics.data());
}

template <typename T, bool centred>
void norm_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                   DeviceIn<float> statistics, DeviceIn<T> scale, DeviceOut<T> dx) {
  expect_type<T>(stream);
  expect_size(shape.size(), dy, x, dx);
  expect_size(shape.columns, scale);
  expect_size((centred ? 2 : 1) * shape.rows, statistics);
  if (shape.size() == 0) return;
  const RowLaunch launch = row_launch<T>(shape, dy.data(), x.data(), scale.data(), dx.data());
  start_kernel(stream, &norm_gradient_kernel<T, centred>, launch.grid, shape, launch.in_packets,
               dy.data(), x.data(), statistics.data(), scale.data(), dx.data());
}

template <typename T, bool centred>
void scale_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                    DeviceIn<float> statistics, DeviceOut<T> dscale) {
  expect_type<T>(stream);
  expect_size(shape.size(), dy, x);
  expect_size(shape.columns, dscale);
  expect_size((centred ? 2 : 1) * shape.rows, statistics);
  sum_columns(stream, shape,
              ScaleGradient<T, centred>{dy.data(), x.data(), statistics.data(), shape.columns},
              dscale.data());
}

}  // namespace

template <typename T>
void layer_norm(const Stream& stream, const Rows& shape, double epsilon, DeviceIn<T> x,
                DeviceIn<T> scale, DeviceIn<T> shift, DeviceOut<T> y, DeviceOut<float> statistics) {
  norm<T, true>(stream, shape, epsilon, x, scale, shift, y, statistics);
}
template <typename T>
void layer_norm_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                         DeviceIn<float> statistics, DeviceIn<T> scale, DeviceOut<T> dx) {
  norm_gradient<T, true>(stream, shape, dy, x, statistics, scale, dx);
}
template <typename T>
void layer_norm_scale_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy,
                               DeviceIn<T> x, DeviceIn<float> statistics, DeviceOut<T> dscale) {
  scale_gradient<T, true>(stream, shape, dy, x, statistics, dscale);
}

template <typename T>
void rms_norm(const Stream& stream, const Rows& shape, double epsilon, DeviceIn<T> x,
              DeviceIn<T> scale, DeviceOut<T> y, DeviceOut<float> statistics) {
  norm<T, false>(stream, shape, epsilon, x, scale, scale, y, statistics);  // no shift: not read
}
template <typename T>
void rms_norm_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                       DeviceIn<float> statistics, DeviceIn<T> scale, DeviceOut<T> dx) {
  norm_gradient<T, false>(stream, shape, dy, x, statistics, scale, dx);
}
template <typename T>
void rms_norm_scale_gradient(const Stream& stream, const Rows& shape, DeviceIn<T> dy, DeviceIn<T> x,
                             DeviceIn<float> statistics, DeviceOut<T> dscale) {
  scale_gradient<T, false>(stream, shape, dy, x, statistics, dscale);
}

#define INSTANTIATE(T)                                                                             \
  template void layer_norm<T>(const Stream&, const Rows&, double, DeviceIn<T>, DeviceIn<T>,        \
                              DeviceIn<T>, DeviceOut<T>, DeviceOut<float>);                        \
  template void layer_norm_gradient<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>,       \
                                       DeviceIn<float>, DeviceIn<T>, DeviceOut<T>);                \
  template void layer_norm_scale_gradient<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>, \
                                             DeviceIn<float>, DeviceOut<T>);                       \
  template void rms_norm<T>(const Stream&, const Rows&, double, DeviceIn<T>, DeviceIn<T>,          \
                            DeviceOut<T>, DeviceOut<float>);                                       \
  template void rms_norm_gradient<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>,         \
                                     DeviceIn<float>, DeviceIn<T>, DeviceOut<T>);                  \
  template void rms_norm_scale_gradient<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>,   \
                                           DeviceIn<float>, DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

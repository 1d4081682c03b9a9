// Softmax on a GPU, a block a row: maximum and sum in one reading, the result in a second one.
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/row.cuh"
#include "kernels/softmax.hpp"

namespace stratagem::kernels {
namespace {

/// Columns that each row sees; queries = 0: all.
struct Seen {
  std::int64_t queries, first, columns;

  __device__ std::int64_t by(std::int64_t row) const {
    if (queries == 0) return columns;
    const std::int64_t seen = first + row % queries + 1;
    return seen < columns ? seen : columns;
  }
};

/// Each thread keeps the largest of its elements, and the sum of exponentials relative to that.
/// Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867.
template <typename T>
__global__ void softmax_kernel(Seen seen_by, float scale, bool in_packets, const T* x, T* y) {
  const std::int64_t row = blockIdx.x * seen_by.columns, seen = seen_by.by(blockIdx.x);
  float largest = -INFINITY, sum = 0;
  for_columns<T>(seen_by.columns, in_packets, [&](auto count, std::int64_t column) {
    if (column >= seen) return;
    const auto values = load<count()>(x + row + column);
    for (int i = 0; i < count(); ++i) {
      if (column + i >= seen) break;
      const float score = values[i] * scale;
      if (score == -INFINITY) continue;  // counts for nothing, also before there is a largest
      if (score > largest) {
        sum *= __expf(largest - score);
        largest = score;
      }
      sum += __expf(score - largest);
    }
  });
  const float of_row = over_block(largest, Larger{});
  sum = over_block(largest == -INFINITY ? 0.0F : sum * __expf(largest - of_row), Add{});
  for_columns<T>(seen_by.columns, in_packets, [&](auto count, std::int64_t column) {
    auto values = load<count()>(x + row + column);
    for (int i = 0; i < count(); ++i)
      values[i] = column + i < seen ? __expf(values[i] * scale - of_row) / sum : 0.0F;
    store(values, y + row + column);
  });
}

template <typename T>
__global__ void softmax_gradient_kernel(Rows shape, float scale, bool in_packets, const T* dy,
                                        const T* y, T* dx) {
  const std::int64_t row = blockIdx.x * shape.columns;
  float sum = 0;
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    const auto gradient = load<count()>(dy + row + column), share = load<count()>(y + row + column);
    for (int i = 0; i < count(); ++i) sum += gradient[i] * share[i];
  });
  sum = over_block(sum, Add{});
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    auto gradient = load<count()>(dy + row + column);
    const auto share = load<count()>(y + row + column);
    for (int i = 0; i < count(); ++i) gradient[i] = scale * share[i] * (gradient[i] - sum);
    store(gradient, dx + row + column);
  });
}

}  // namespace

template <typename T>
void softmax(const Stream& stream, const Rows& shape, double scale,
             const std::optional<CausalMask>& mask, DeviceIn<T> x, DeviceOut<T> y) {
  expect_type<T>(stream);
  expect_size(shape.size(), x, y);
  expects(!mask || (mask->queries > 0 && mask->first >= 0 && shape.rows % mask->queries == 0),
          "rows of masked scores are whole sequences of queries");
  if (shape.size() == 0) return;
  const Seen seen{.queries = mask ? mask->queries : 0,
                  .first = mask ? mask->first : 0,
                  .columns = shape.columns};
  const RowLaunch launch = row_launch<T>(shape, x.data(), y.data());
  start_kernel(stream, &softmax_kernel<T>, launch.grid, seen, static_cast<float>(scale),
               launch.in_packets, x.data(), y.data());
}

template <typename T>
void softmax_gradient(const Stream& stream, const Rows& shape, double scale, DeviceIn<T> dy,
                      DeviceIn<T> y, DeviceOut<T> dx) {
  expect_type<T>(stream);
  expect_size(shape.size(), dy, y, dx);
  if (shape.size() == 0) return;
  const RowLaunch launch = row_launch<T>(shape, dy.data(), y.data(), dx.data());
  start_kernel(stream, &softmax_gradient_kernel<T>, launch.grid, shape, static_cast<float>(scale),
               launch.in_packets, dy.data(), y.data(), dx.data());
}

#define INSTANTIATE(T)                                                                            \
  template void softmax<T>(const Stream&, const Rows&, double, const std::optional<CausalMask>&,  \
                           DeviceIn<T>, DeviceOut<T>);                                            \
  template void softmax_gradient<T>(const Stream&, const Rows&, double, DeviceIn<T>, DeviceIn<T>, \
                                    DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

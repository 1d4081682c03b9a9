// The steps of a cross-entropy on a GPU, a block a row.
#include "kernels/cross_entropy.hpp"
#include "kernels/inside/each.cuh"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/row.cuh"

namespace stratagem::kernels {
namespace {

template <typename T, typename Combine>
__global__ void reduce_kernel(Rows shape, bool in_packets, Combine combine, float neutral,
                              const T* x, float* result) {
  const std::int64_t row = blockIdx.x * shape.columns;
  float mine = neutral;
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    const auto values = load<count()>(x + row + column);
    for (int i = 0; i < count(); ++i) mine = combine(mine, values[i]);
  });
  mine = over_block(mine, combine);
  if (threadIdx.x == 0) result[blockIdx.x] = mine;
}

template <typename T>
__global__ void exponential_kernel(Rows shape, bool in_packets, const T* x, const float* maximum,
                                   T* y) {
  const std::int64_t row = blockIdx.x * shape.columns;
  const float largest = maximum[blockIdx.x];
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    auto values = load<count()>(x + row + column);
    for (int i = 0; i < count(); ++i) values[i] = __expf(values[i] - largest);
    store(values, y + row + column);
  });
}

template <typename T>
__global__ void cross_entropy_gradient_kernel(Rows shape, std::int64_t first, bool in_packets,
                                              const float* dloss, const T* exponentials,
                                              const float* sum, const std::int64_t* labels, T* dx) {
  const std::int64_t row = blockIdx.x * shape.columns, label = labels[blockIdx.x] - first;
  const float gradient = dloss[blockIdx.x], share = gradient / sum[blockIdx.x];
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    auto values = load<count()>(exponentials + row + column);
    for (int i = 0; i < count(); ++i)
      values[i] = values[i] * share - (column + i == label ? gradient : 0.0F);
    store(values, dx + row + column);
  });
}

template <typename T>
struct Pick {
  const T* x;
  const std::int64_t* labels;
  std::int64_t first, columns;

  __device__ void operator()(std::int64_t row, float& picked) const {
    const std::int64_t column = labels[row] - first;
    picked = column >= 0 && column < columns ? widen(x[row * columns + column]) : 0.0F;
  }
};

struct LossOf {
  __device__ void operator()(std::int64_t, float maximum, float sum, float picked,
                             float& loss) const {
    loss = logf(sum) + maximum - picked;
  }
};

template <typename T, typename Combine>
void reduce(const Stream& stream, const Rows& shape, const Combine& combine, float neutral,
            DeviceIn<T> x, DeviceOut<float> result) {
  expect_type<T>(stream);
  expect_size(shape.size(), x);
  expect_size(shape.rows, result);
  if (shape.rows == 0) return;
  const RowLaunch launch = row_launch<T>(shape, x.data());
  start_kernel(stream, &reduce_kernel<T, Combine>, launch.grid, shape, launch.in_packets, combine,
               neutral, x.data(), result.data());
}

}  // namespace

template <typename T>
void row_maximum(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceOut<float> maximum) {
  reduce<T>(stream, shape, Larger{}, -INFINITY, x, maximum);
}

template <typename T>
void row_sums(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceOut<float> sums) {
  reduce<T>(stream, shape, Add{}, 0.0F, x, sums);
}

template <typename T>
void exponential(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceIn<float> maximum,
                 DeviceOut<T> y) {
  expect_type<T>(stream);
  expect_size(shape.size(), x, y);
  expect_size(shape.rows, maximum);
  if (shape.size() == 0) return;
  const RowLaunch launch = row_launch<T>(shape, x.data(), y.data());
  start_kernel(stream, &exponential_kernel<T>, launch.grid, shape, launch.in_packets, x.data(),
               maximum.data(), y.data());
}

template <typename T>
void pick(const Stream& stream, const Rows& shape, std::int64_t first, DeviceIn<T> x,
          DeviceIn<std::int64_t> labels, DeviceOut<float> picked) {
  expect_type<T>(stream);
  expect_size(shape.size(), x);
  expect_size(shape.rows, labels, picked);
  for_each(stream, picked.size(), Pick<T>{x.data(), labels.data(), first, shape.columns},
           writes<float>(picked));
}

void cross_entropy(const Stream& stream, DeviceIn<float> maximum, DeviceIn<float> sum,
                   DeviceIn<float> picked, DeviceOut<float> loss) {
  expect_size(static_cast<std::int64_t>(loss.size()), maximum, sum, picked);
  for_each(stream, loss.size(), LossOf{}, reads<float>(maximum), reads<float>(sum),
           reads<float>(picked), writes<float>(loss));
}

template <typename T>
void cross_entropy_gradient(const Stream& stream, const Rows& shape, std::int64_t first,
                            DeviceIn<float> dloss, DeviceIn<T> exponentials, DeviceIn<float> sum,
                            DeviceIn<std::int64_t> labels, DeviceOut<T> dx) {
  expect_type<T>(stream);
  expect_size(shape.size(), exponentials, dx);
  expect_size(shape.rows, dloss, sum, labels);
  if (shape.size() == 0) return;
  const RowLaunch launch = row_launch<T>(shape, exponentials.data(), dx.data());
  start_kernel(stream, &cross_entropy_gradient_kernel<T>, launch.grid, shape, first,
               launch.in_packets, dloss.data(), exponentials.data(), sum.data(), labels.data(),
               dx.data());
}

#define INSTANTIATE(T)                                                                     \
  template void row_maximum<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceOut<float>); \
  template void exponential<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<float>,   \
                               DeviceOut<T>);                                              \
  template void row_sums<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceOut<float>);    \
  template void pick<T>(const Stream&, const Rows&, std::int64_t, DeviceIn<T>,             \
                        DeviceIn<std::int64_t>, DeviceOut<float>);                         \
  template void cross_entropy_gradient<T>(const Stream&, const Rows&, std::int64_t,        \
                                          DeviceIn<float>, DeviceIn<T>, DeviceIn<float>,   \
                                          DeviceIn<std::int64_t>, DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

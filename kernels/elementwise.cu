// Elementwise sums, products, casts on a GPU, and sums over rows.
#include "kernels/elementwise.hpp"
#include "kernels/inside/column_sums.cuh"
#include "kernels/inside/each.cuh"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/row.cuh"

namespace stratagem::kernels {
namespace {

struct Sum {
  __device__ void operator()(std::int64_t, float a, float b, float& y) const { y = a + b; }
};
struct ProductOf {
  __device__ void operator()(std::int64_t, float a, float b, float& y) const { y = a * b; }
};
struct Copy {
  __device__ void operator()(std::int64_t, float x, float& y) const { y = x; }
};
struct Constant {
  float value;
  __device__ void operator()(std::int64_t, float& y) const { y = value; }
};

template <typename T>
__global__ void bias_add_kernel(Rows shape, bool in_packets, const T* x, const T* bias, T* y) {
  const std::int64_t row = blockIdx.x * shape.columns;
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    auto values = load<count()>(x + row + column);
    const auto shift = load<count()>(bias + column);
    for (int i = 0; i < count(); ++i) values[i] += shift[i];
    store(values, y + row + column);
  });
}

/// For fewer rows than a GPU runs blocks.
template <typename T>
struct SumWithBias {
  const T* bias;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i, float x, float& y) const {
    y = x + widen(bias[i % columns]);
  }
};

template <typename T>
struct Element {
  const T* x;
  std::int64_t columns;
  __device__ float operator()(std::int64_t row, std::int64_t column) const {
    return widen(x[row * columns + column]);
  }
};

}  // namespace

template <typename T>
void add(const Stream& stream, DeviceIn<T> a, DeviceIn<T> b, DeviceOut<T> y) {
  expect_type<T>(stream);
  expect_size(static_cast<std::int64_t>(y.size()), a, b);
  for_each(stream, y.size(), Sum{}, reads<T>(a), reads<T>(b), writes<T>(y));
}

template <typename T>
void multiply(const Stream& stream, DeviceIn<T> a, DeviceIn<T> b, DeviceOut<T> y) {
  expect_type<T>(stream);
  expect_size(static_cast<std::int64_t>(y.size()), a, b);
  for_each(stream, y.size(), ProductOf{}, reads<T>(a), reads<T>(b), writes<T>(y));
}

template <typename T>
void bias_add(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceIn<T> bias,
              DeviceOut<T> y) {
  expect_type<T>(stream);
  expect_size(shape.size(), x, y);
  expect_size(shape.columns, bias);
  if (shape.size() == 0) return;
  if (shape.rows < 128 && shape.columns > 4096) {
    return for_each(stream, y.size(), SumWithBias<T>{bias.data(), shape.columns}, reads<T>(x),
                    writes<T>(y));
  }
  const RowLaunch launch = row_launch<T>(shape, x.data(), bias.data(), y.data());
  start_kernel(stream, &bias_add_kernel<T>, launch.grid, shape, launch.in_packets, x.data(),
               bias.data(), y.data());
}

template <typename T>
void column_sums(const Stream& stream, const Rows& shape, DeviceIn<T> x, DeviceOut<T> sums) {
  expect_type<T>(stream);
  expect_size(shape.size(), x);
  expect_size(shape.columns, sums);
  sum_columns(stream, shape, Element<T>{x.data(), shape.columns}, sums.data());
}

template <typename T>
void fill(const Stream& stream, double value, DeviceOut<T> y) {
  expect_type<T>(stream);
  for_each(stream, y.size(), Constant{static_cast<float>(value)}, writes<T>(y));
}

template <typename From, typename To>
void cast(const Stream& stream, DeviceIn<From> x, DeviceOut<To> y) {
  expect_type<From>(stream);
  expect_type<To>(stream);
  expect_size(static_cast<std::int64_t>(y.size()), x);
  for_each(stream, y.size(), Copy{}, reads<From>(x), writes<To>(y));
}

#define INSTANTIATE(T)                                                                           \
  template void add<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);                   \
  template void multiply<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);              \
  template void bias_add<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>); \
  template void column_sums<T>(const Stream&, const Rows&, DeviceIn<T>, DeviceOut<T>);           \
  template void fill<T>(const Stream&, double, DeviceOut<T>);                                    \
  template void cast<T, float>(const Stream&, DeviceIn<T>, DeviceOut<float>);                    \
  template void cast<T, Half>(const Stream&, DeviceIn<T>, DeviceOut<Half>);                      \
  template void cast<T, BFloat16>(const Stream&, DeviceIn<T>, DeviceOut<BFloat16>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

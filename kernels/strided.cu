// A thread an element, or a packet where all rows of both sides are whole packets.
#include "kernels/inside/elements.cuh"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/launch.cuh"
#include "kernels/strided.hpp"

namespace stratagem::kernels {
namespace {

constexpr int most_strides = 8;

struct DeviceStrided {
  int dimensions = 0;
  std::int64_t size = 1;
  std::int64_t sizes[most_strides], from[most_strides], to[most_strides];
};

template <int count, typename From, typename To>
__global__ void __launch_bounds__(256)
    strided_kernel(DeviceStrided shape, bool adds, const From* x, To* y) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i * count < shape.size; i += threads) {
    std::int64_t rest = i * count, from = 0, to = 0;
    for (int d = shape.dimensions; d-- > 0;) {
      const std::int64_t index = rest % shape.sizes[d];
      rest /= shape.sizes[d];
      from += index * shape.from[d];
      to += index * shape.to[d];
    }
    const auto read = *reinterpret_cast<const Packet<From, count>*>(x + from);
    Packet<To, count> written;
    if (adds) written = *reinterpret_cast<const Packet<To, count>*>(y + to);
#pragma unroll
    for (int e = 0; e < count; ++e) {
      Arithmetic<To> value = widen(read.elements[e]);
      if (adds) value = static_cast<Arithmetic<To>>(value + widen(written.elements[e]));
      written.elements[e] = narrow<To>(value);
    }
    *reinterpret_cast<Packet<To, count>*>(y + to) = written;
  }
}

/// Do packets of so many elements lie side by side on both sides, wherever they are?
template <int count, typename From, typename To>
bool in_packets(const Strided& shape, const From* x, const To* y) {
  if (shape.sizes.empty() || shape.from.back() != 1 || shape.to.back() != 1) return false;
  if (shape.sizes.back() % count != 0) return false;
  for (std::size_t d = 0; d + 1 < shape.sizes.size(); ++d) {
    if (shape.from[d] % count != 0 || shape.to[d] % count != 0) return false;
  }
  return aligned(x, count * sizeof(From)) && aligned(y, count * sizeof(To));
}

template <int count, typename From, typename To>
void launch(const Stream& stream, const DeviceStrided& shape, bool adds, const From* x, To* y) {
  const std::int64_t blocks = (shape.size / count + 255) / 256;
  const auto most = static_cast<unsigned>(std::min<std::int64_t>(blocks, std::int64_t{1} << 30));
  start_kernel(stream, &strided_kernel<count, From, To>, {most, 256}, shape, adds, x, y);
}

}  // namespace

template <typename From, typename To>
void copy_strided(const Stream& stream, const Strided& shape, bool adds, DeviceIn<From> x,
                  DeviceOut<To> y) {
  expect_type<From>(stream);
  expect_type<To>(stream);
  expect_within(shape, x.size(), y.size());
  if (shape.size() == 0) return;
  const Strided simple = merged(shape);
  expects(simple.sizes.size() <= most_strides, "a copy of at most eight dimensions");
  DeviceStrided there{};
  there.dimensions = static_cast<int>(simple.sizes.size());
  there.size = simple.size();
  for (std::size_t d = 0; d < simple.sizes.size(); ++d) {
    there.sizes[d] = simple.sizes[d];
    there.from[d] = simple.from[d];
    there.to[d] = simple.to[d];
  }
  constexpr int count = 16 / static_cast<int>(std::max(sizeof(From), sizeof(To)));
  in_packets<count>(simple, x.data(), y.data())
      ? launch<count>(stream, there, adds, x.data(), y.data())
      : launch<1>(stream, there, adds, x.data(), y.data());
}

#define INSTANTIATE(From, To)                                                               \
  template void copy_strided<From, To>(const Stream&, const Strided&, bool, DeviceIn<From>, \
                                       DeviceOut<To>);
INSTANTIATE(float, float)
INSTANTIATE(Half, Half)
INSTANTIATE(BFloat16, BFloat16)
INSTANTIATE(std::int8_t, std::int8_t)
INSTANTIATE(Half, float)
INSTANTIATE(float, Half)
INSTANTIATE(BFloat16, float)
INSTANTIATE(float, BFloat16)
#undef INSTANTIATE

}  // namespace stratagem::kernels

// A thread a pair of places: it has its angle for all heads, in fp64 as the host does.
#include "kernels/inside/elements.cuh"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/launch.cuh"
#include "kernels/rotary.hpp"

namespace stratagem::kernels {
namespace {

/// Blocks (x: pairs of places and elements, y: heads, several to a block).
template <typename T>
__global__ void __launch_bounds__(256)
    rotary_kernel(Rotary shape, double direction, const T* x, T* y) {
  const std::int64_t half = shape.size / 2;
  const std::int64_t pair = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pair >= shape.sequence * half) return;
  const std::int64_t place = pair / half, i = pair % half;
  const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(shape.size);
  const double angle =
      direction * static_cast<double>(shape.first + place) * pow(shape.base, exponent);
  const auto cosine = static_cast<float>(cos(angle)), sine = static_cast<float>(sin(angle));
  for (std::int64_t head = blockIdx.y; head < shape.heads; head += gridDim.y) {
    const std::int64_t at = (head * shape.sequence + place) * shape.size + i;
    const float one = widen(x[at]), other = widen(x[at + half]);
    y[at] = narrow<T>(one * cosine - other * sine);
    y[at + half] = narrow<T>(one * sine + other * cosine);
  }
}

template <typename T>
void turn(const Stream& stream, const Rotary& shape, double direction, DeviceIn<T> x,
          DeviceOut<T> y) {
  expect_type<T>(stream);
  expects(shape.size % 2 == 0, "elements of a head that is turned come in pairs");
  expect_size(shape.heads * shape.sequence * shape.size, x, y);
  if (x.size() == 0) return;
  const std::int64_t pairs = shape.sequence * (shape.size / 2);
  const dim3 blocks(static_cast<unsigned>((pairs + 255) / 256),
                    static_cast<unsigned>(std::min<std::int64_t>((shape.heads + 7) / 8, 65535)));
  start_kernel(stream, &rotary_kernel<T>, {blocks, 256}, shape, direction, x.data(), y.data());
}

}  // namespace

template <typename T>
void rotary(const Stream& stream, const Rotary& shape, DeviceIn<T> x, DeviceOut<T> y) {
  turn<T>(stream, shape, 1, x, y);
}

template <typename T>
void rotary_gradient(const Stream& stream, const Rotary& shape, DeviceIn<T> dy, DeviceOut<T> dx) {
  turn<T>(stream, shape, -1, dy, dx);
}

#define INSTANTIATE(T)                                                              \
  template void rotary<T>(const Stream&, const Rotary&, DeviceIn<T>, DeviceOut<T>); \
  template void rotary_gradient<T>(const Stream&, const Rotary&, DeviceIn<T>, DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

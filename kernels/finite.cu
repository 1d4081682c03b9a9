// Sets a flag on the GPU if an element is NaN or infinite.
#include "kernels/finite.hpp"
#include "kernels/inside/each.cuh"
#include "kernels/inside/expect_type.cuh"

namespace stratagem::kernels {
namespace {

struct FindNotFinite {
  std::int8_t* found;
  __device__ void operator()(std::int64_t, float x) const {
    if (!isfinite(x)) *found = 1;
  }
};

}  // namespace

template <typename T>
void find_not_finite(const Stream& stream, DeviceIn<T> x, DeviceOut<std::int8_t> found) {
  expect_type<T>(stream);
  expect_size(1, found);
  for_each(stream, x.size(), FindNotFinite{found.data()}, reads<T>(x));
}

#define INSTANTIATE(T) \
  template void find_not_finite<T>(const Stream&, DeviceIn<T>, DeviceOut<std::int8_t>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

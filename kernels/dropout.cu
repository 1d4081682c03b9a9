// Dropout on a GPU: a thread draws four numbers at once where its elements share a block of them.
#include "kernels/dropout.hpp"
#include "kernels/inside/each.cuh"
#include "kernels/inside/expect_type.cuh"

namespace stratagem::kernels {
namespace {

constexpr int most_dimensions = 8;

/// A part whose trailing dimensions that are whole count as one run.
struct DevicePart {
  int outer = 0;  ///< dimensions in front of a run
  std::int64_t run = 1, run_begin = 0, run_whole = 1;
  std::int64_t begin[most_dimensions], extent[most_dimensions], whole[most_dimensions];

  /// Place in the whole of element `here` of the part.
  __device__ std::int64_t there(std::int64_t here) const {
    std::int64_t rest = here / run, place = 0, step = run_whole;
    const std::int64_t within = run_begin + here % run;
    for (int d = outer; d-- > 0;) {
      place += (begin[d] + rest % extent[d]) * step;
      rest /= extent[d];
      step *= whole[d];
    }
    return place + within;
  }
};

DevicePart on_device(const Part& part) {
  const std::size_t dimensions = part.whole.size();
  bool inside = part.begin.size() == dimensions && part.extent.size() == dimensions;
  for (std::size_t d = 0; inside && d < dimensions; ++d)
    inside = part.begin[d] >= 0 && part.extent[d] >= 0 &&
             part.begin[d] + part.extent[d] <= part.whole[d];
  expects(inside, "a part lies inside its whole");
  expects(dimensions <= most_dimensions, "a part of at most eight dimensions");
  DevicePart result{};
  std::size_t d = dimensions;
  while (d > 0) {  // up to the first dimension, from behind, that is not whole
    --d;
    result.run_begin = part.begin[d] * result.run_whole;
    result.run = part.extent[d] * result.run_whole;
    result.run_whole *= part.whole[d];
    if (part.extent[d] != part.whole[d]) break;
  }
  result.outer = static_cast<int>(d);
  for (std::size_t outer = 0; outer < d; ++outer) {
    result.begin[outer] = part.begin[outer];
    result.extent[outer] = part.extent[outer];
    result.whole[outer] = part.whole[outer];
  }
  return result;
}

constexpr int drawn = 4;  ///< numbers of one block of the random stream

template <typename T>
struct Dropout {
  DevicePart part;
  std::int64_t size;
  float threshold, scale;
  RandomStream random;
  const T* x;
  T* y;
  std::int8_t* mask;

  __device__ void treat(std::int64_t here, float number) const {
    const bool kept = number >= threshold;
    mask[here] = kept ? 1 : 0;
    y[here] = narrow<T>(kept ? widen(x[here]) * scale : 0.0F);
  }
};

/// Each thread has four elements of the part: one block of numbers if they are one in the whole,
/// and as many as it takes otherwise.
template <typename T>
__global__ void __launch_bounds__(256) dropout_kernel(Dropout<T> dropout) {
  const std::int64_t first =
      drawn * (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  std::array<float, drawn> numbers{};
  std::uint64_t block = ~std::uint64_t{0};
  for (int i = 0; i < drawn && first + i < dropout.size; ++i) {
    const auto there = static_cast<std::uint64_t>(dropout.part.there(first + i));
    if (there / drawn != block) {
      block = there / drawn;
      numbers = uniform_block(dropout.random, block);
    }
    const auto which = there % drawn;
    dropout.treat(first + i, which < 2 ? (which == 0 ? numbers[0] : numbers[1])
                                       : (which == 2 ? numbers[2] : numbers[3]));
  }
}

struct DropoutGradient {
  float scale;
  __device__ void operator()(std::int64_t, float dy, std::int8_t mask, float& dx) const {
    dx = mask != 0 ? dy * scale : 0.0F;
  }
};

float scale_of(double probability) { return static_cast<float>(1 / (1 - probability)); }

}  // namespace

template <typename T>
void dropout(const Stream& stream, const Part& part, double probability, const RandomStream& random,
             DeviceIn<T> x, DeviceOut<T> y, DeviceOut<std::int8_t> mask) {
  expect_type<T>(stream);
  expect_size(part.size(), x, y, mask);
  expects(probability >= 0 && probability < 1, "dropout keeps some elements");
  if (part.size() == 0) return;
  const Dropout<T> work{.part = on_device(part),
                        .size = part.size(),
                        .threshold = static_cast<float>(probability),
                        .scale = scale_of(probability),
                        .random = random,
                        .x = x.data(),
                        .y = y.data(),
                        .mask = mask.data()};
  const auto blocks = static_cast<unsigned>((part.size() + 256 * drawn - 1) / (256 * drawn));
  start_kernel(stream, &dropout_kernel<T>, {blocks, 256}, work);
}

template <typename T>
void dropout_gradient(const Stream& stream, double probability, DeviceIn<T> dy,
                      DeviceIn<std::int8_t> mask, DeviceOut<T> dx) {
  expect_type<T>(stream);
  expect_size(static_cast<std::int64_t>(dx.size()), dy, mask);
  for_each(stream, dx.size(), DropoutGradient{scale_of(probability)}, reads<T>(dy),
           reads<std::int8_t>(mask), writes<T>(dx));
}

#define INSTANTIATE(T)                                                                           \
  template void dropout<T>(const Stream&, const Part&, double, const RandomStream&, DeviceIn<T>, \
                           DeviceOut<T>, DeviceOut<std::int8_t>);                                \
  template void dropout_gradient<T>(const Stream&, double, DeviceIn<T>, DeviceIn<std::int8_t>,   \
                                    DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

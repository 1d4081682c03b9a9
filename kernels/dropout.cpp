// Dropout by counters: a run of neighbouring elements at a time.
#include "kernels/dropout.hpp"

#include <array>

namespace stratagem::kernels {

template <typename T>
void dropout(const Part& part, double probability, const RandomStream& random, In<T> x, Out<T> y,
             Out<std::int8_t> mask) {
  expect_size(part.size(), x, y, mask);
  expects(probability >= 0 && probability < 1, "dropout keeps some elements");
  const T scale = static_cast<T>(1 / (1 - probability));
  const auto threshold = static_cast<float>(probability);
  for_each_run(part, [&](std::int64_t here, std::int64_t there, std::int64_t length) {
    std::array<float, 4> numbers{};
    for (std::int64_t i = 0; i < length; ++i) {
      const auto index = static_cast<std::uint64_t>(there + i);
      if (i == 0 || index % 4 == 0) numbers = uniform_block(random, index / 4);
      const bool kept = numbers[index % 4] >= threshold;
      mask[here + i] = kept ? 1 : 0;
      y[here + i] = kept ? x[here + i] * scale : T{0};
    }
  });
}

template <typename T>
void dropout_gradient(double probability, In<T> dy, In<std::int8_t> mask, Out<T> dx) {
  expect_size(static_cast<std::int64_t>(dx.size()), dy, mask);
  const T scale = static_cast<T>(1 / (1 - probability));
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = mask[i] != 0 ? dy[i] * scale : T{0};
}

#define INSTANTIATE(T)                                                              \
  template void dropout<T>(const Part&, double, const RandomStream&, In<T>, Out<T>, \
                           Out<std::int8_t>);                                       \
  template void dropout_gradient<T>(double, In<T>, In<std::int8_t>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

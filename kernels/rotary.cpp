// Applies rotary positions, or the inverse rotation for the gradient.
#include "kernels/rotary.hpp"

#include <cmath>

namespace stratagem::kernels {
namespace {

template <typename T>
void turn(const Rotary& shape, double direction, In<T> x, Out<T> y) {
  expects(shape.size % 2 == 0, "elements of a head that is turned come in pairs");
  expect_size(shape.heads * shape.sequence * shape.size, x, y);
  const std::int64_t half = shape.size / 2;
  for (std::int64_t s = 0; s < shape.sequence; ++s) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(shape.size);
      const double angle =
          direction * static_cast<double>(shape.first + s) * std::pow(shape.base, exponent);
      const T cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        const std::int64_t at = (head * shape.sequence + s) * shape.size + i;
        const T one = x[at], other = x[at + half];
        y[at] = one * cosine - other * sine;
        y[at + half] = one * sine + other * cosine;
      }
    }
  }
}

}  // namespace

template <typename T>
void rotary(const Rotary& shape, In<T> x, Out<T> y) {
  turn<T>(shape, 1, x, y);
}

template <typename T>
void rotary_gradient(const Rotary& shape, In<T> dy, Out<T> dx) {
  turn<T>(shape, -1, dy, dx);
}

#define INSTANTIATE(T)                                   \
  template void rotary<T>(const Rotary&, In<T>, Out<T>); \
  template void rotary_gradient<T>(const Rotary&, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

// Norms: a row's statistics, then what is normalised; gradients from the same statistics.
#include "kernels/norm.hpp"

#include <cmath>

#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {
namespace {

/// Of one row: x as its statistics normalise it. An expression, which makes no array of its own: a
/// row of a few thousand elements then stays in the first-level cache.
template <typename T>
auto layer_normalised(const Rows& shape, In<T> x, In<T> statistics) {
  return [in = rows_of<T>(shape, x), statistics](std::int64_t i) {
    return (in.row(i) - statistics[2 * i]) * statistics[2 * i + 1];
  };
}
template <typename T>
auto rms_normalised(const Rows& shape, In<T> x, In<T> statistics) {
  return
      [in = rows_of<T>(shape, x), statistics](std::int64_t i) { return in.row(i) * statistics[i]; };
}

/// What every row receives of its gradient `g` (times scale): r * (g - m1 - z * m2), where m2 is
/// the mean of g * z, and m1 that of g, or 0 where no mean was taken off. `normalised(i)` is row i
/// as z, and `r(i)` its factor.
template <typename T, typename Normalised, typename Factor>
void input_gradient(const Rows& shape, In<T> dy, In<T> scale, bool centred,
                    const Normalised& normalised, const Factor& r, Out<T> dx) {
  const auto gradient = rows_of<T>(shape, dy);
  auto out = rows_of<T>(shape, dx);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const auto z = normalised(i);
    const auto g = gradient.row(i) * all_of<T>(scale).transpose();
    const T along = (g * z).mean();
    const T shifted = centred ? g.mean() : T{0};
    out.row(i) = r(i) * (g - shifted - z * along);
  }
}

template <typename T, typename Normalised>
void scale_gradient(const Rows& shape, In<T> dy, const Normalised& normalised, Out<T> dscale) {
  const auto gradient = rows_of<T>(shape, dy);
  auto out = all_of<T>(dscale);
  out.setZero();
  for (std::int64_t i = 0; i < shape.rows; ++i)
    out += (gradient.row(i) * normalised(i)).transpose();
}

}  // namespace

template <typename T>
void layer_norm(const Rows& shape, double epsilon, In<T> x, In<T> scale, In<T> shift, Out<T> y,
                Out<T> statistics) {
  expect_size(shape.size(), x, y);
  expect_size(shape.columns, scale, shift);
  expect_size(2 * shape.rows, statistics);
  const auto in = rows_of<T>(shape, x);
  auto out = rows_of<T>(shape, y);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const T mean = in.row(i).mean();
    const T variance = (in.row(i) - mean).square().mean();
    const T r = 1 / std::sqrt(variance + static_cast<T>(epsilon));
    out.row(i) =
        (in.row(i) - mean) * r * all_of<T>(scale).transpose() + all_of<T>(shift).transpose();
    statistics[2 * i] = mean;
    statistics[2 * i + 1] = r;
  }
}

template <typename T>
void layer_norm_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics, In<T> scale,
                         Out<T> dx) {
  expect_size(shape.size(), dy, x, dx);
  expect_size(shape.columns, scale);
  expect_size(2 * shape.rows, statistics);
  const auto r = [&](std::int64_t i) { return statistics[2 * i + 1]; };
  input_gradient<T>(shape, dy, scale, true, layer_normalised<T>(shape, x, statistics), r, dx);
}

template <typename T>
void layer_norm_scale_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics,
                               Out<T> dscale) {
  expect_size(shape.size(), dy, x);
  expect_size(shape.columns, dscale);
  expect_size(2 * shape.rows, statistics);
  scale_gradient<T>(shape, dy, layer_normalised<T>(shape, x, statistics), dscale);
}

template <typename T>
void rms_norm(const Rows& shape, double epsilon, In<T> x, In<T> scale, Out<T> y,
              Out<T> statistics) {
  expect_size(shape.size(), x, y);
  expect_size(shape.columns, scale);
  expect_size(shape.rows, statistics);
  const auto in = rows_of<T>(shape, x);
  auto out = rows_of<T>(shape, y);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const T r = 1 / std::sqrt(in.row(i).square().mean() + static_cast<T>(epsilon));
    out.row(i) = in.row(i) * r * all_of<T>(scale).transpose();
    statistics[i] = r;
  }
}

template <typename T>
void rms_norm_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics, In<T> scale,
                       Out<T> dx) {
  expect_size(shape.size(), dy, x, dx);
  expect_size(shape.columns, scale);
  expect_size(shape.rows, statistics);
  const auto r = [&](std::int64_t i) { return statistics[i]; };
  input_gradient<T>(shape, dy, scale, false, rms_normalised<T>(shape, x, statistics), r, dx);
}

template <typename T>
void rms_norm_scale_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics,
                             Out<T> dscale) {
  expect_size(shape.size(), dy, x);
  expect_size(shape.columns, dscale);
  expect_size(shape.rows, statistics);
  scale_gradient<T>(shape, dy, rms_normalised<T>(shape, x, statistics), dscale);
}

#define INSTANTIATE(T)                                                                   \
  template void layer_norm<T>(const Rows&, double, In<T>, In<T>, In<T>, Out<T>, Out<T>); \
  template void layer_norm_gradient<T>(const Rows&, In<T>, In<T>, In<T>, In<T>, Out<T>); \
  template void layer_norm_scale_gradient<T>(const Rows&, In<T>, In<T>, In<T>, Out<T>);  \
  template void rms_norm<T>(const Rows&, double, In<T>, In<T>, Out<T>, Out<T>);          \
  template void rms_norm_gradient<T>(const Rows&, In<T>, In<T>, In<T>, In<T>, Out<T>);   \
  template void rms_norm_scale_gradient<T>(const Rows&, In<T>, In<T>, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

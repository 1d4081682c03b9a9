// Norms: a row's statistics, then what is normalised; gradients from the same statistics.
#include "kernels/norm.hpp"

#include <cmath>

#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {
namespace {

/// What the normalised row receives of its gradient `g` (times scale): r * (g - m1 - z * m2), where m2
/// is the mean of g * z, and m1 that of g, or 0 where no mean was taken off. z is the normalised row.
template <typename T, typename Row, typename Gradient, typename Result>
void give_back(T r, bool centred, const Row& z, const Gradient& g, Result&& dx) {
  const T along = (g * z).mean();
  const T shifted = centred ? g.mean() : T{0};
  dx = r * (g - shifted - z * along);
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
  expect_size(2 * shape.rows, statistics);
  const auto gradient = rows_of<T>(shape, dy);
  const auto in = rows_of<T>(shape, x);
  auto out = rows_of<T>(shape, dx);
  Eigen::Array<T, 1, Eigen::Dynamic> z(shape.columns), g(shape.columns);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const T r = statistics[2 * i + 1];
    z = (in.row(i) - statistics[2 * i]) * r;
    g = gradient.row(i) * all_of<T>(scale).transpose();
    give_back(r, true, z, g, out.row(i));
  }
}

template <typename T>
void layer_norm_scale_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics,
                               Out<T> dscale) {
  expect_size(shape.size(), dy, x);
  expect_size(shape.columns, dscale);
  const auto gradient = rows_of<T>(shape, dy);
  const auto in = rows_of<T>(shape, x);
  auto out = all_of<T>(dscale);
  out.setZero();
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const auto z = (in.row(i) - statistics[2 * i]) * statistics[2 * i + 1];
    out += (gradient.row(i) * z).transpose();
  }
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
  expect_size(shape.rows, statistics);
  const auto gradient = rows_of<T>(shape, dy);
  const auto in = rows_of<T>(shape, x);
  auto out = rows_of<T>(shape, dx);
  Eigen::Array<T, 1, Eigen::Dynamic> z(shape.columns), g(shape.columns);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    z = in.row(i) * statistics[i];
    g = gradient.row(i) * all_of<T>(scale).transpose();
    give_back(statistics[i], false, z, g, out.row(i));
  }
}

template <typename T>
void rms_norm_scale_gradient(const Rows& shape, In<T> dy, In<T> x, In<T> statistics,
                             Out<T> dscale) {
  expect_size(shape.size(), dy, x);
  expect_size(shape.columns, dscale);
  const auto gradient = rows_of<T>(shape, dy);
  const auto in = rows_of<T>(shape, x);
  auto out = all_of<T>(dscale);
  out.setZero();
  for (std::int64_t i = 0; i < shape.rows; ++i)
    out += (gradient.row(i) * in.row(i) * statistics[i]).transpose();
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

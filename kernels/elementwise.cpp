// Elementwise sums, products, casts, and sums over rows.
#include "kernels/elementwise.hpp"

#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {

template <typename T>
void add(In<T> a, In<T> b, Out<T> y) {
  expect_size(static_cast<std::int64_t>(y.size()), a, b);
  all_of<T>(y) = all_of<T>(a) + all_of<T>(b);
}

template <typename T>
void multiply(In<T> a, In<T> b, Out<T> y) {
  expect_size(static_cast<std::int64_t>(y.size()), a, b);
  all_of<T>(y) = all_of<T>(a) * all_of<T>(b);
}

template <typename T>
void bias_add(const Rows& shape, In<T> x, In<T> bias, Out<T> y) {
  expect_size(shape.size(), x, y);
  expect_size(shape.columns, bias);
  rows_of<T>(shape, y) = rows_of<T>(shape, x).rowwise() + all_of<T>(bias).transpose();
}

template <typename T>
void column_sums(const Rows& shape, In<T> x, Out<T> sums) {
  expect_size(shape.size(), x);
  expect_size(shape.columns, sums);
  auto out = all_of<T>(sums);
  out.setZero();
  const auto in = rows_of<T>(shape, x);
  for (std::int64_t i = 0; i < shape.rows; ++i) out += in.row(i).transpose();
}

template <typename From, typename To>
void cast(In<From> x, Out<To> y) {
  expect_size(static_cast<std::int64_t>(y.size()), x);
  all_of<To>(y) = all_of<From>(x).template cast<To>();
}

#define INSTANTIATE(T)                                          \
  template void add<T>(In<T>, In<T>, Out<T>);                   \
  template void multiply<T>(In<T>, In<T>, Out<T>);              \
  template void bias_add<T>(const Rows&, In<T>, In<T>, Out<T>); \
  template void column_sums<T>(const Rows&, In<T>, Out<T>);     \
  template void cast<float, T>(In<float>, Out<T>);              \
  template void cast<double, T>(In<double>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

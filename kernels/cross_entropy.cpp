// The steps of a cross-entropy over a part of the vocabulary.
#include "kernels/cross_entropy.hpp"

#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {

template <typename T>
void row_maximum(const Rows& shape, In<T> x, Out<T> maximum) {
  expect_size(shape.size(), x);
  expect_size(shape.rows, maximum);
  all_of<T>(maximum) = rows_of<T>(shape, x).rowwise().maxCoeff();
}

template <typename T>
void exponential(const Rows& shape, In<T> x, In<T> maximum, Out<T> y) {
  expect_size(shape.size(), x, y);
  expect_size(shape.rows, maximum);
  rows_of<T>(shape, y) = (rows_of<T>(shape, x).colwise() - all_of<T>(maximum)).exp();
}

template <typename T>
void row_sums(const Rows& shape, In<T> x, Out<T> sums) {
  expect_size(shape.size(), x);
  expect_size(shape.rows, sums);
  all_of<T>(sums) = rows_of<T>(shape, x).rowwise().sum();
}

template <typename T>
void pick(const Rows& shape, std::int64_t first, In<T> x, In<std::int64_t> labels, Out<T> picked) {
  expect_size(shape.size(), x);
  expect_size(shape.rows, labels, picked);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const std::int64_t column = labels[i] - first;
    const bool here = column >= 0 && column < shape.columns;
    picked[i] = here ? x[i * shape.columns + column] : T{0};
  }
}

template <typename T>
void cross_entropy(In<T> maximum, In<T> sum, In<T> picked, Out<T> loss) {
  expect_size(static_cast<std::int64_t>(loss.size()), maximum, sum, picked);
  all_of<T>(loss) = all_of<T>(sum).log() + all_of<T>(maximum) - all_of<T>(picked);
}

template <typename T>
void cross_entropy_gradient(const Rows& shape, std::int64_t first, In<T> dloss, In<T> exponentials,
                            In<T> sum, In<std::int64_t> labels, Out<T> dx) {
  expect_size(shape.size(), exponentials, dx);
  expect_size(shape.rows, dloss, sum, labels);
  auto out = rows_of<T>(shape, dx);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    out.row(i) = rows_of<T>(shape, exponentials).row(i) * (dloss[i] / sum[i]);
    const std::int64_t column = labels[i] - first;
    if (column >= 0 && column < shape.columns) out(i, column) -= dloss[i];
  }
}

#define INSTANTIATE(T)                                                                    \
  template void row_maximum<T>(const Rows&, In<T>, Out<T>);                               \
  template void exponential<T>(const Rows&, In<T>, In<T>, Out<T>);                        \
  template void row_sums<T>(const Rows&, In<T>, Out<T>);                                  \
  template void pick<T>(const Rows&, std::int64_t, In<T>, In<std::int64_t>, Out<T>);      \
  template void cross_entropy<T>(In<T>, In<T>, In<T>, Out<T>);                            \
  template void cross_entropy_gradient<T>(const Rows&, std::int64_t, In<T>, In<T>, In<T>, \
                                          In<std::int64_t>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

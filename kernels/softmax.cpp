// Softmax row by row: maximum, exponentials, sum; masked columns are never read.
#include "kernels/softmax.hpp"

#include <algorithm>

#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {

template <typename T>
void softmax(const Rows& shape, double scale, const std::optional<CausalMask>& mask, In<T> x,
             Out<T> y) {
  expect_size(shape.size(), x, y);
  expects(!mask || (mask->queries > 0 && mask->first >= 0 && shape.rows % mask->queries == 0),
          "rows of masked scores are whole sequences of queries");
  const auto in = rows_of<T>(shape, x);
  auto out = rows_of<T>(shape, y);
  const T factor = static_cast<T>(scale);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const std::int64_t seen =
        mask ? std::min(shape.columns, mask->first + i % mask->queries + 1) : shape.columns;
    if (seen > 0) {
      const auto scores = in.row(i).head(seen) * factor;
      auto probabilities = out.row(i).head(seen);
      probabilities = (scores - scores.maxCoeff()).exp();
      probabilities /= probabilities.sum();
    }
    out.row(i).tail(shape.columns - seen).setZero();
  }
}

template <typename T>
void softmax_gradient(const Rows& shape, double scale, In<T> dy, In<T> y, Out<T> dx) {
  expect_size(shape.size(), dy, y, dx);
  const auto gradient = rows_of<T>(shape, dy);
  const auto probabilities = rows_of<T>(shape, y);
  auto out = rows_of<T>(shape, dx);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const T mean = (gradient.row(i) * probabilities.row(i)).sum();
    out.row(i) = static_cast<T>(scale) * probabilities.row(i) * (gradient.row(i) - mean);
  }
}

#define INSTANTIATE(T)                                                                            \
  template void softmax<T>(const Rows&, double, const std::optional<CausalMask>&, In<T>, Out<T>); \
  template void softmax_gradient<T>(const Rows&, double, In<T>, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

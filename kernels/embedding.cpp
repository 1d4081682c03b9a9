// Looks up rows of a part of a table, and adds up what they receive.
#include "kernels/embedding.hpp"

#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {

template <typename T>
void embedding(std::int64_t width, std::int64_t first, In<std::int64_t> tokens, In<T> table,
               Out<T> y) {
  const Rows picked{static_cast<std::int64_t>(tokens.size()), width};
  const Rows kept{static_cast<std::int64_t>(table.size()) / width, width};
  expect_size(picked.size(), y);
  expect_size(kept.size(), table);
  const auto rows = rows_of<T>(kept, table);
  auto out = rows_of<T>(picked, y);
  for (std::int64_t i = 0; i < picked.rows; ++i) {
    const std::int64_t row = tokens[i] - first;
    if (row >= 0 && row < kept.rows)
      out.row(i) = rows.row(row);
    else
      out.row(i).setZero();
  }
}

template <typename T>
void embedding_gradient(std::int64_t width, std::int64_t first, In<T> dy, In<std::int64_t> tokens,
                        Out<T> dtable) {
  const Rows picked{static_cast<std::int64_t>(tokens.size()), width};
  const Rows kept{static_cast<std::int64_t>(dtable.size()) / width, width};
  expect_size(picked.size(), dy);
  expect_size(kept.size(), dtable);
  const auto gradient = rows_of<T>(picked, dy);
  auto rows = rows_of<T>(kept, dtable);
  for (std::int64_t i = 0; i < picked.rows; ++i) {
    const std::int64_t row = tokens[i] - first;
    if (row >= 0 && row < kept.rows) rows.row(row) += gradient.row(i);
  }
}

#define INSTANTIATE(T)                                                                     \
  template void embedding<T>(std::int64_t, std::int64_t, In<std::int64_t>, In<T>, Out<T>); \
  template void embedding_gradient<T>(std::int64_t, std::int64_t, In<T>, In<std::int64_t>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

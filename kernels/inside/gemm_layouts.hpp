// Where the matrices of a product lie in their operands.
#pragma once

#include <cstdint>

#include "kernels/gemm.hpp"

namespace stratagem::kernels {

/// How the matrices of one operand lie in memory.
struct MatrixLayout {
  std::int64_t row = 0;     ///< elements from one row to the next
  std::int64_t next = 0;    ///< from one matrix of the batch to the next
  std::int64_t extent = 0;  ///< of all matrices
};

inline MatrixLayout layout_of(std::int64_t rows, std::int64_t columns, std::int64_t row,
                              std::int64_t next, std::int64_t batch) {
  MatrixLayout result{.row = row > 0 ? row : columns};
  result.next = next > 0 ? next : rows * result.row;
  const bool empty = rows == 0 || columns == 0 || batch == 0;
  result.extent = empty ? 0 : (batch - 1) * result.next + (rows - 1) * result.row + columns;
  return result;
}

struct Layouts {
  MatrixLayout a, b, c;
};

inline Layouts layouts_of(const Gemm& g) {
  return {.a = g.transpose_a ? layout_of(g.k, g.m, g.row_a, g.next_a, g.batch)
                             : layout_of(g.m, g.k, g.row_a, g.next_a, g.batch),
          .b = g.transpose_b ? layout_of(g.n, g.k, g.row_b, g.next_b, g.batch)
                             : layout_of(g.k, g.n, g.row_b, g.next_b, g.batch),
          .c = layout_of(g.m, g.n, g.row_c, g.next_c, g.batch)};
}

/// Throws BrokenPromise for an operand that is too small.
template <typename A, typename B, typename C>
Layouts checked_layouts(const Gemm& g, const A& a, const B& b, const C& c) {
  const Layouts result = layouts_of(g);
  const auto holds = [](const auto& operand, const MatrixLayout& layout) {
    return static_cast<std::int64_t>(operand.size()) >= layout.extent;
  };
  expects(holds(a, result.a) && holds(b, result.b) && holds(c, result.c),
          "the operands of a matrix product hold all of its matrices");
  return result;
}

}  // namespace stratagem::kernels

// Matrix products by OpenBLAS; above it the loops that say what it computes.
#include "kernels/gemm.hpp"

#include <cblas.h>

#include <mutex>

namespace stratagem::kernels {
namespace {

struct Operand {
  std::int64_t row = 0;     ///< elements from one row to the next
  std::int64_t next = 0;    ///< from one matrix of the batch to the next
  std::int64_t extent = 0;  ///< of all matrices
};

Operand layout(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t next,
               std::int64_t batch) {
  Operand result{.row = row > 0 ? row : columns};
  result.next = next > 0 ? next : rows * result.row;
  const bool empty = rows == 0 || columns == 0 || batch == 0;
  result.extent = empty ? 0 : (batch - 1) * result.next + (rows - 1) * result.row + columns;
  return result;
}

struct Layouts {
  Operand a, b, c;
};

Layouts layouts(const Gemm& g) {
  return {.a = g.transpose_a ? layout(g.k, g.m, g.row_a, g.next_a, g.batch)
                             : layout(g.m, g.k, g.row_a, g.next_a, g.batch),
          .b = g.transpose_b ? layout(g.n, g.k, g.row_b, g.next_b, g.batch)
                             : layout(g.k, g.n, g.row_b, g.next_b, g.batch),
          .c = layout(g.m, g.n, g.row_c, g.next_c, g.batch)};
}

template <typename T>
Layouts checked_layouts(const Gemm& g, In<T> a, In<T> b, Out<T> c) {
  const Layouts result = layouts(g);
  const auto holds = [](auto operand, const Operand& layout) {
    return static_cast<std::int64_t>(operand.size()) >= layout.extent;
  };
  expects(holds(a, result.a) && holds(b, result.b) && holds(c, result.c),
          "the operands of a matrix product hold all of its matrices");
  return result;
}

/// Ranks have a core each: threads of a library would only get into each other's way.
void keep_to_one_thread() {
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
}

void multiply(const Gemm& g, const Layouts& in, const float* a, const float* b, float* c) {
  const auto blas = [](std::int64_t size) { return static_cast<blasint>(size); };
  cblas_sgemm(CblasRowMajor, g.transpose_a ? CblasTrans : CblasNoTrans,
              g.transpose_b ? CblasTrans : CblasNoTrans, blas(g.m), blas(g.n), blas(g.k),
              static_cast<float>(g.alpha), a, blas(in.a.row), b, blas(in.b.row),
              static_cast<float>(g.beta), c, blas(in.c.row));
}

void multiply(const Gemm& g, const Layouts& in, const double* a, const double* b, double* c) {
  const auto blas = [](std::int64_t size) { return static_cast<blasint>(size); };
  cblas_dgemm(CblasRowMajor, g.transpose_a ? CblasTrans : CblasNoTrans,
              g.transpose_b ? CblasTrans : CblasNoTrans, blas(g.m), blas(g.n), blas(g.k), g.alpha,
              a, blas(in.a.row), b, blas(in.b.row), g.beta, c, blas(in.c.row));
}

}  // namespace

template <typename T>
void gemm_reference(const Gemm& g, In<T> a, In<T> b, Out<T> c) {
  const Layouts in = checked_layouts(g, a, b, c);
  for (std::int64_t p = 0; p < g.batch; ++p) {
    for (std::int64_t i = 0; i < g.m; ++i) {
      for (std::int64_t j = 0; j < g.n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < g.k; ++l) {
          const std::int64_t at_a = g.transpose_a ? l * in.a.row + i : i * in.a.row + l;
          const std::int64_t at_b = g.transpose_b ? j * in.b.row + l : l * in.b.row + j;
          sum += static_cast<double>(a[p * in.a.next + at_a]) * b[p * in.b.next + at_b];
        }
        T& element = c[p * in.c.next + i * in.c.row + j];
        element = static_cast<T>(g.alpha * sum + (g.beta == 0 ? 0 : g.beta * element));
      }
    }
  }
}

template <typename T>
void gemm(const Gemm& g, In<T> a, In<T> b, Out<T> c) {
  keep_to_one_thread();
  const Layouts in = checked_layouts(g, a, b, c);
  if (g.m == 0 || g.n == 0) return;
  for (std::int64_t p = 0; p < g.batch; ++p)
    multiply(g, in, a.data() + p * in.a.next, b.data() + p * in.b.next, c.data() + p * in.c.next);
}

#define INSTANTIATE(T)                                                \
  template void gemm_reference<T>(const Gemm&, In<T>, In<T>, Out<T>); \
  template void gemm<T>(const Gemm&, In<T>, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

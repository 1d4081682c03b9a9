// Matrix products by OpenBLAS; above it the loops that say what it computes.
#include "kernels/gemm.hpp"

#include <cblas.h>

#include <cstddef>
#include <mutex>
#include <new>

#include "kernels/inside/gemm_layouts.hpp"

namespace stratagem::kernels {
namespace {

/// Ranks have a core each: threads of a library would only get into each other's way. And a library
/// that waits for ever where its own buffer of 128 MiB cannot be had must not be asked: this throws
/// std::bad_alloc.
void prepare_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    openblas_set_num_threads(1);
    ::operator delete(::operator new (std::size_t{136} << 20U));
  });
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
  prepare_library();
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

// OpenBLAS against three loops, on every layout that operators ask for.
#include "kernels/gemm.hpp"

#include <array>
#include <cmath>

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::gemm_test {

namespace {

/// Transposes, sizes of one and of primes, a batch, sums onto what is there.
std::vector<Gemm> shapes() {
  std::vector<Gemm> result;
  for (const auto [m, n, k] : {std::array{1, 1, 1}, {1, 17, 3}, {13, 1, 64}, {65, 31, 127}}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        result.push_back({.m = m, .n = n, .k = k, .transpose_a = a, .transpose_b = b});
        result.push_back({.m = m,
                          .n = n,
                          .k = k,
                          .batch = 3,
                          .transpose_a = a,
                          .transpose_b = b,
                          .alpha = 0.5,
                          .beta = 1});
      }
    }
  }
  return result;
}

template <typename T>
struct Operands {
  explicit Operands(const Gemm& g)
      : a(random_operand<T>(g.batch * g.m * g.k, 1)),
        b(random_operand<T>(g.batch * g.k * g.n, 2)),
        c(random_operand<T>(g.batch * g.m * g.n, 3)) {}
  std::vector<T> a, b, c;
};

TEST_CASE("products of every layout agree with three loops in fp64") {
  for (const Gemm& shape : shapes()) {
    CAPTURE(shape.m, shape.n, shape.k, shape.batch, shape.transpose_a, shape.transpose_b);
    Operands<double> reference(shape), fp64(shape);
    Operands<float> fp32(shape);
    gemm_reference<double>(shape, reference.a, reference.b, reference.c);
    gemm<double>(shape, fp64.a, fp64.b, fp64.c);
    gemm<float>(shape, fp32.a, fp32.b, fp32.c);
    CHECK(relative_error(fp64.c, reference.c) < 1e-13);
    CHECK(relative_error(fp32.c, reference.c) < fp32_error);
  }
}

TEST_CASE("a product by hand: 2 x 3 times 3 x 2") {
  const std::vector<double> a = {1, 2, 3, 4, 5, 6}, b = {7, 8, 9, 10, 11, 12};
  std::vector<double> c(4);
  gemm<double>({.m = 2, .n = 2, .k = 3}, a, b, c);
  CHECK(c == std::vector<double>{58, 64, 139, 154});
  // The same matrices with A given as 3 x 2 and B as 2 x 3, by columns.
  const std::vector<double> at = {1, 4, 2, 5, 3, 6}, bt = {7, 9, 11, 8, 10, 12};
  gemm<double>({.m = 2, .n = 2, .k = 3, .transpose_a = true, .transpose_b = true}, at, bt, c);
  CHECK(c == std::vector<double>{58, 64, 139, 154});
}

TEST_CASE("rows that lie apart: a block of a larger matrix") {
  // A is the left 2 x 2 of a 2 x 4 matrix, C the right 2 x 2 of another one.
  const std::vector<double> a = {1, 2, 9, 9, 3, 4, 9, 9}, b = {1, 0, 0, 1};
  std::vector<double> c(8, -1);
  gemm<double>({.m = 2, .n = 2, .k = 2, .row_a = 4, .row_c = 4}, a, b, std::span(c).subspan(2));
  CHECK(c == std::vector<double>{-1, -1, 1, 2, -1, -1, 3, 4});
}

TEST_CASE("a sum over nothing is zero, and beta = 0 forgets what was there, NaN too") {
  std::vector<double> c(4, std::nan(""));
  gemm<double>({.m = 2, .n = 2, .k = 0}, std::vector<double>{}, std::vector<double>{}, c);
  CHECK(c == std::vector<double>(4, 0));
}

TEST_CASE("an operand that is too small is refused") {
  std::vector<float> small(5), c(4);
  CHECK_THROWS_AS(gemm<float>({.m = 2, .n = 2, .k = 3}, small, std::vector<float>(6), c),
                  stratagem::BrokenPromise);
}

}  // namespace

}  // namespace stratagem::kernels::gemm_test

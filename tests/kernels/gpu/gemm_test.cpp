// cublasLt against three loops in fp64, on every layout that operators ask for.
#include "kernels/gemm.hpp"

#include <array>

#include "tests/kernels/gpu/gpu.hpp"

using namespace stratagem::kernels;

namespace {

/// Transposes, sizes of one and of primes, a batch, sums onto what is there.
std::vector<Gemm> shapes() {
  std::vector<Gemm> result;
  for (const auto [m, n, k] : {std::array{1, 1, 1},
                               {1, 17, 3},
                               {13, 1, 64},
                               {65, 31, 127},
                               {128, 256, 64},
                               {257, 129, 511}}) {
    if (emulated() && k > 127) continue;
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

TEST_CASE("products of every layout and type agree with three loops in fp64") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Gemm& g : shapes()) {
      CAPTURE(g.m, g.n, g.k, g.batch, g.transpose_a, g.transpose_b, sizeof(T));
      const auto a = random_both<T>(g.batch * g.m * g.k, 1);
      const auto b = random_both<T>(g.batch * g.k * g.n, 2);
      for (int again = 0; again < 2; ++again) {  // chosen, then from the table
        auto c = random_both<T>(g.batch * g.m * g.n, 3);
        gemm<T>(stream(), g, a, b, c.device);
        gemm_reference<double>(g, a.values, b.values, c.values);
        CHECK(error_of(c.device, c.values) <= tolerance<T>);
      }
    }
  });
}

TEST_CASE("tf32 is as exact as 11 bits are") {
  if (no_device()) return;
  const Gemm g{.m = 257, .n = 129, .k = 511};
  const auto a = random_both<float>(g.m * g.k, 1), b = random_both<float>(g.k * g.n, 2);
  const auto c = room<float>(g.m * g.n);
  std::vector<double> reference(c.size());
  gemm<float>(stream(), g, a, b, c, Tf32::on);
  gemm_reference<double>(g, a.values, b.values, reference);
  CHECK(error_of(c, reference) <= 1e-3);
}

TEST_CASE("rows that lie apart, and operands that begin anywhere") {
  if (no_device()) return;
  for_types([]<typename T>() {
    const Gemm g{.m = 33, .n = 17, .k = 40, .row_a = 47, .row_b = 19, .row_c = 23};
    const auto a = random_both<T>(2000, 1), b = random_both<T>(1000, 2);
    auto c = random_both<T>(1000, 3);
    gemm<T>(stream(), g, DeviceIn<T>(a.device).subspan(3, 1997),
            DeviceIn<T>(b.device).subspan(1, 999), c.device.span().subspan(5, 995));
    gemm_reference<double>(g, std::span(a.values).subspan(3), std::span(b.values).subspan(1),
                           std::span(c.values).subspan(5));
    CHECK(error_of(c.device, c.values) <= tolerance<T>);
  });
}

TEST_CASE("a sum over nothing is zero, and beta = 0 forgets what was there, NaN too") {
  if (no_device()) return;
  const auto c = room<float>(4);
  gemm<float>(stream(), {.m = 2, .n = 2, .k = 0}, {}, {}, c);
  CHECK(on_host(stream(), c) == std::vector<float>(4, 0));
  const auto one = both<float>({1, 1, 1, 1}), d = both<float>({1, 2, 3, 4});
  const auto y = room<float>(4);
  gemm<float>(stream(), {.m = 2, .n = 2, .k = 2}, one, d, y);
  CHECK(on_host(stream(), y) == std::vector<float>{4, 6, 4, 6});
}

TEST_CASE("an operand that is too small is refused") {
  if (no_device()) return;
  const auto small = room<float>(5), b = room<float>(6), c = room<float>(4);
  CHECK_THROWS_AS(gemm<float>(stream(), {.m = 2, .n = 2, .k = 3}, small, b, c),
                  stratagem::BrokenPromise);
}

}  // namespace

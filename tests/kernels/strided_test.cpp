// Copies at distances: parts and transposes by hand, and the same after dimensions were merged.
#include "kernels/strided.hpp"

#include <numeric>

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::strided_test {
namespace {

TEST_CASE("a transpose, a part, and a row that is read again") {
  std::vector<double> x(6);
  std::iota(x.begin(), x.end(), 0);
  std::vector<double> y(6, -1);
  copy_strided<double>({.sizes = {3, 2}, .from = {1, 3}, .to = {2, 1}}, false, x, y);
  CHECK(y == std::vector<double>{0, 3, 1, 4, 2, 5});
  std::vector<double> part(2, 10);  // the last column of two rows of three
  copy_strided<double>({.sizes = {2}, .from = {3}, .to = {1}}, true, In<double>(x).subspan(2),
                       part);
  CHECK(part == std::vector<double>{12, 15});
  copy_strided<double>({.sizes = {2, 3}, .from = {0, 1}, .to = {3, 1}}, false, x, y);
  CHECK(y == std::vector<double>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("merged dimensions copy the same") {
  // (2, 3, 4, 5) of an array of which rows of 20 are 25 apart: the last two are one.
  const Strided shape{.sizes = {2, 3, 4, 5}, .from = {75, 25, 5, 1}, .to = {20, 40, 5, 1}};
  const Strided simple = merged(shape);
  CHECK(simple.sizes == std::vector<std::int64_t>{2, 3, 20});
  CHECK(simple.size() == shape.size());
  const auto x = random_operand<double>(150, 1);
  std::vector<double> one(120), other(120);
  copy_strided<double>(shape, false, x, one);
  copy_strided<double>(simple, false, x, other);
  CHECK(one == other);
  CHECK(merged({.sizes = {1, 1}, .from = {9, 9}, .to = {9, 9}}).sizes.empty());
}

TEST_CASE("what reaches out of an operand is a broken promise") {
  const std::vector<double> x(6);
  std::vector<double> y(6);
  CHECK_THROWS_AS(copy_strided<double>({.sizes = {7}, .from = {1}, .to = {1}}, false, x, y),
                  BrokenPromise);
  CHECK_THROWS_AS(copy_strided<double>({.sizes = {3}, .from = {1}, .to = {3}}, false, x, y),
                  BrokenPromise);
  CHECK_THROWS_AS(copy_strided<double>({.sizes = {3}, .from = {1}, .to = {}}, false, x, y),
                  BrokenPromise);
  copy_strided<double>({.sizes = {0, 9}, .from = {9, 1}, .to = {9, 1}}, false, x, y);
}

}  // namespace
}  // namespace stratagem::kernels::strided_test

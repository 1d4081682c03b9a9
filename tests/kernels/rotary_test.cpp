// Rotary positions keep lengths, leave the first token alone, and make products depend on
// distances.
#include "kernels/rotary.hpp"

#include <cmath>
#include <vector>

#include "tests/catch.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::rotary_test {
namespace {

std::vector<double> turned(const Rotary& shape, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  rotary<double>(shape, x, y);
  return y;
}

double product(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

TEST_CASE("a pair turns by its place, the first by one radian a token") {
  const std::vector<double> y = turned({.heads = 1, .sequence = 3, .size = 2}, {1, 0, 1, 0, 0, 1});
  CHECK(y[0] == 1);
  CHECK(y[1] == 0);
  CHECK(y[2] == Approx(std::cos(1)));
  CHECK(y[3] == Approx(std::sin(1)));
  CHECK(y[4] == Approx(-std::sin(2)));
  CHECK(y[5] == Approx(std::cos(2)));
}

TEST_CASE("products of turned rows depend on the distance of their places alone") {
  const std::vector<double> q = {0.3, -1.2, 0.7, 0.1, 2, -0.4}, k = {1, 0.5, -0.2, 0.9, -1.1, 0.6};
  const auto at = [](const std::vector<double>& row, std::int64_t place) {
    return turned({.heads = 1, .sequence = 1, .size = 6, .first = place}, row);
  };
  CHECK(product(at(q, 7), at(k, 4)) == Approx(product(at(q, 103), at(k, 100))));
  CHECK(product(at(q, 7), at(q, 7)) == Approx(product(q, q)));
  CHECK(product(at(q, 7), at(k, 4)) != Approx(product(at(q, 7), at(k, 5))));
}

TEST_CASE("the gradient of a rotation turns back, and a part of the tokens is that part of all") {
  const Rotary all{.heads = 2, .sequence = 4, .size = 4};
  std::vector<double> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  const std::vector<double> y = turned(all, x);
  std::vector<double> back(x.size());
  rotary_gradient<double>(all, y, back);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(back[i] == Approx(x[i]));
  // The last two tokens of the first head.
  const std::vector<double> part =
      turned({.heads = 1, .sequence = 2, .size = 4, .first = 2}, {x.begin() + 8, x.begin() + 16});
  for (std::size_t i = 0; i < part.size(); ++i) CHECK(part[i] == y[8 + i]);
}

TEST_CASE("a head without pairs is refused") {
  std::vector<double> x(3);
  CHECK_THROWS_AS(turned({.heads = 1, .sequence = 1, .size = 3}, x), BrokenPromise);
}

}  // namespace
}  // namespace stratagem::kernels::rotary_test

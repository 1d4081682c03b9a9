// Adam by hand, and on a parabola.
#include "kernels/adam.hpp"

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::adam_test {

namespace {

TEST_CASE("the first step moves by the learning rate, whatever the gradient's size") {
  // m / (1 - b1) = g and v / (1 - b2) = g^2, so the step is rate * g / |g|.
  for (const double g : {1e-3, 1.0, -50.0}) {
    std::vector<double> p = {2}, m = {0}, v = {0};
    adam<double>({.learning_rate = 0.1, .epsilon = 0}, std::vector<double>{g}, p, m, v);
    CHECK(p[0] == Approx(2 - std::copysign(0.1, g)));
    CHECK(m[0] == Approx(0.1 * g));
    CHECK(v[0] == Approx(0.001 * g * g));
  }
}

TEST_CASE("decay is taken off the parameter and leaves the moments alone") {
  std::vector<double> p = {2}, m = {0}, v = {0};
  adam<double>({.learning_rate = 0.1, .weight_decay = 0.5}, std::vector<double>{0}, p, m, v);
  CHECK(p[0] == Approx(2 * (1 - 0.05)));
  CHECK(m[0] == 0);
}

TEST_CASE("a gradient that was scaled by a power of two steps as it would unscaled") {
  std::vector<double> p = {2}, m = {0.5}, v = {0.25}, q = p, n = m, w = v;
  adam<double>({.step = 3}, std::vector<double>{0.7}, p, m, v);
  adam<double>({.step = 3, .gradient_scale = 1024}, std::vector<double>{0.7 * 1024}, q, n, w);
  CHECK(p == q);
  CHECK(m == n);
  CHECK(v == w);
}

TEST_CASE("many steps in fp32 agree with the formula in fp64, term by term") {
  const std::int64_t size = 131;
  auto p32 = random_operand<float>(size, 1);
  auto p64 = random_operand<double>(size, 1);
  auto m32 = zeros<float>(size), v32 = m32;
  auto m64 = zeros<double>(size), v64 = m64;
  for (std::int64_t step = 1; step <= 20; ++step) {
    const auto gradient = random_operand<double>(size, 100 + step);
    adam<float>({.weight_decay = 0.01, .step = step}, random_operand<float>(size, 100 + step), p32,
                m32, v32);
    for (std::size_t i = 0; i < p64.size(); ++i) {
      m64[i] = 0.9 * m64[i] + 0.1 * gradient[i];
      v64[i] = 0.999 * v64[i] + 0.001 * gradient[i] * gradient[i];
      const double m_hat = m64[i] / (1 - std::pow(0.9, step));
      const double v_hat = v64[i] / (1 - std::pow(0.999, step));
      p64[i] -= 1e-3 * (m_hat / (std::sqrt(v_hat) + 1e-8) + 0.01 * p64[i]);
    }
  }
  CHECK(relative_error(p32, p64) < fp32_error);
  CHECK(relative_error(v32, v64) < fp32_error);
}

}  // namespace

}  // namespace stratagem::kernels::adam_test

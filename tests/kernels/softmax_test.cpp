// Softmax: rows sum to one, masks, gradients against finite differences.
#include "kernels/softmax.hpp"

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::softmax_test {

namespace {

TEST_CASE("softmax by hand: exp(0), exp(log 3) share 1 to 3, also when scaled") {
  std::vector<double> y(2);
  softmax<double>({1, 2}, 1, {}, std::vector<double>{0, std::log(3.0)}, y);
  CHECK(y[0] == Approx(0.25));
  softmax<double>({1, 2}, 0.5, {}, std::vector<double>{0, 2 * std::log(3.0)}, y);
  CHECK(y[1] == Approx(0.75));
}

TEST_CASE("large scores do not overflow") {
  std::vector<float> y(2);
  softmax<float>({1, 2}, 1, {}, std::vector<float>{1e5F, 1e5F}, y);
  CHECK(y == std::vector<float>{0.5F, 0.5F});
}

TEST_CASE("fp32 agrees with fp64 on awkward shapes, masked or not, and rows sum to one") {
  for (const Rows& shape : awkward_rows) {
    CAPTURE(shape.rows, shape.columns);
    for (const bool masked : {false, true}) {
      std::optional<CausalMask> mask;
      if (masked) mask = {.queries = shape.rows};
      std::vector<float> y32(shape.size()), dx32(shape.size());
      std::vector<double> y64(shape.size()), dx64(shape.size());
      softmax<float>(shape, 0.7, mask, random_operand<float>(shape.size(), 1), y32);
      softmax<double>(shape, 0.7, mask, random_operand<double>(shape.size(), 1), y64);
      softmax_gradient<float>(shape, 0.7, random_operand<float>(shape.size(), 2), y32, dx32);
      softmax_gradient<double>(shape, 0.7, random_operand<double>(shape.size(), 2), y64, dx64);
      CHECK(relative_error(y32, y64) < fp32_error);
      if (shape.columns > 1) CHECK(relative_error(dx32, dx64) < fp32_error);
      for (std::int64_t i = 0; i < shape.rows; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < shape.columns; ++j) sum += y64[i * shape.columns + j];
        CHECK(sum == Approx(1).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("a causal mask hides later keys, query by query, from where the queries begin") {
  // Two sequences of two queries at places 1 and 2 of three keys, all scores equal.
  std::vector<double> y(12);
  softmax<double>({4, 3}, 1, CausalMask{.queries = 2, .first = 1}, std::vector<double>(12, 5), y);
  const double half = 0.5, third = 1.0 / 3;
  const std::vector<double> expected = {half, half, 0, third, third, third,
                                        half, half, 0, third, third, third};
  CHECK(relative_error(y, expected) < 1e-15);
}

TEST_CASE("gradients of softmax agree with finite differences, masked or not") {
  const Rows shape{6, 5};
  for (const bool masked : {false, true}) {
    std::optional<CausalMask> mask;
    if (masked) mask = {.queries = 3, .first = 1};
    const auto x = random_operand<double>(shape.size(), 1),
               dy = random_operand<double>(shape.size(), 2);
    const auto forward = [&](const std::vector<double>& at) {
      std::vector<double> y(shape.size());
      softmax<double>(shape, 0.7, mask, at, y);
      return y;
    };
    std::vector<double> dx(shape.size());
    softmax_gradient<double>(shape, 0.7, dy, forward(x), dx);
    const auto loss = [&](const std::vector<double>& at) { return weighted_sum(forward(at), dy); };
    CHECK(relative_error(dx, finite_differences(x, loss)) < 1e-8);
  }
}

}  // namespace

}  // namespace stratagem::kernels::softmax_test

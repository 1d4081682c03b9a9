// Sums, products, casts and sums over rows, by hand.
#include "kernels/elementwise.hpp"

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::elementwise_test {

namespace {

TEST_CASE("sums, products and biases by hand") {
  std::vector<float> y(4);
  add<float>(std::vector<float>{1, 2, 3, 4}, std::vector<float>{10, 20, 30, 40}, y);
  CHECK(y == std::vector<float>{11, 22, 33, 44});
  multiply<float>(std::vector<float>{1, 2, 3, 4}, std::vector<float>{10, 20, 30, 40}, y);
  CHECK(y == std::vector<float>{10, 40, 90, 160});
  bias_add<float>({2, 2}, std::vector<float>{1, 2, 3, 4}, std::vector<float>{100, 200}, y);
  CHECK(y == std::vector<float>{101, 202, 103, 204});
}

TEST_CASE("column sums are the gradient of a bias") {
  for (const Rows& shape : awkward_rows) {
    const auto dy = random_operand<double>(shape.size(), 1);
    std::vector<double> sums(shape.columns);
    column_sums<double>(shape, dy, sums);
    const auto bias = random_operand<double>(shape.columns, 2);
    if (shape.size() > 100) continue;  // differences cost a pass an element
    CHECK(relative_error(sums, finite_differences(bias, [&](const auto& at) {
                           std::vector<double> y(shape.size());
                           bias_add<double>(shape, zeros<double>(shape.size()), at, y);
                           return weighted_sum(y, dy);
                         })) < 1e-9);
  }
}

TEST_CASE("column sums in fp32 agree with fp64 over many rows") {
  const Rows shape{4099, 3};
  std::vector<float> fp32(3);
  std::vector<double> fp64(3);
  column_sums<float>(shape, random_operand<float>(shape.size(), 1), fp32);
  column_sums<double>(shape, random_operand<double>(shape.size(), 1), fp64);
  CHECK(relative_error(fp32, fp64) < fp32_error);
}

TEST_CASE("casts round to the nearest") {
  std::vector<float> y(2);
  cast<double, float>(std::vector<double>{1 + 1e-9, 0.5}, y);
  CHECK(y == std::vector<float>{1, 0.5F});
  std::vector<double> wide(2);
  cast<float, double>(y, wide);
  CHECK(wide == std::vector<double>{1, 0.5});
}

TEST_CASE("operands of another size are refused") {
  std::vector<float> y(3);
  CHECK_THROWS_AS(add<float>(std::vector<float>(3), std::vector<float>(4), y),
                  stratagem::BrokenPromise);
}

}  // namespace

}  // namespace stratagem::kernels::elementwise_test

// Layer norm and RMS norm: by hand, against fp64, and their gradients against finite differences.
#include "kernels/norm.hpp"

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::norm_test {

namespace {

constexpr double epsilon = 1e-5;

template <typename T>
struct LayerNorm {
  explicit LayerNorm(const Rows& size)
      : shape(size),
        x(random_operand<T>(size.size(), 1)),
        scale(random_operand<T>(size.columns, 2)),
        shift(random_operand<T>(size.columns, 3)),
        dy(random_operand<T>(size.size(), 4)),
        y(zeros<T>(size.size())),
        dx(y),
        statistics(zeros<T>(2 * size.rows)),
        dscale(zeros<T>(size.columns)) {}

  void run() {
    layer_norm<T>(shape, epsilon, x, scale, shift, y, statistics);
    layer_norm_gradient<T>(shape, dy, x, statistics, scale, dx);
    layer_norm_scale_gradient<T>(shape, dy, x, statistics, dscale);
  }

  Rows shape;
  std::vector<T> x, scale, shift, dy, y, dx, statistics, dscale;
};

template <typename T>
struct RmsNorm : LayerNorm<T> {
  explicit RmsNorm(const Rows& size) : LayerNorm<T>(size) {
    this->statistics = zeros<T>(size.rows);
  }
  void run() {
    rms_norm<T>(this->shape, epsilon, this->x, this->scale, this->y, this->statistics);
    rms_norm_gradient<T>(this->shape, this->dy, this->x, this->statistics, this->scale, this->dx);
    rms_norm_scale_gradient<T>(this->shape, this->dy, this->x, this->statistics, this->dscale);
  }
};

template <template <typename> class Norm>
void expect_fp32_near_fp64(const Rows& shape) {
  CAPTURE(shape.rows, shape.columns);
  Norm<float> fp32(shape);
  Norm<double> fp64(shape);
  fp32.run();
  fp64.run();
  CHECK(relative_error(fp32.y, fp64.y) < fp32_error);
  CHECK(relative_error(fp32.dscale, fp64.dscale) < fp32_error);
  if (shape.columns > 1) CHECK(relative_error(fp32.dx, fp64.dx) < fp32_error);
}

template <template <typename> class Norm>
void expect_gradients(const Rows& shape) {
  Norm<double> norm(shape);
  norm.run();
  const auto loss = [&](auto member) {
    return [&, member](const std::vector<double>& value) {
      Norm<double> moved(shape);
      moved.*member = value;
      moved.run();
      return weighted_sum(moved.y, norm.dy);
    };
  };
  CHECK(relative_error(norm.dx, finite_differences(norm.x, loss(&LayerNorm<double>::x))) < 1e-7);
  CHECK(relative_error(norm.dscale,
                       finite_differences(norm.scale, loss(&LayerNorm<double>::scale))) < 1e-8);
}

TEST_CASE("layer norm of one row by hand") {
  // 1, 3: mean 2, variance 1; without epsilon -1, 1; times 2, 5, plus 10, 20.
  std::vector<double> y(2), statistics(2);
  layer_norm<double>({1, 2}, 0, std::vector<double>{1, 3}, std::vector<double>{2, 5},
                     std::vector<double>{10, 20}, y, statistics);
  CHECK(y == std::vector<double>{8, 25});
  CHECK(statistics == std::vector<double>{2, 1});
}

TEST_CASE("RMS norm of one row by hand") {
  // 3, 4: mean of squares 12.5.
  std::vector<double> y(2), statistics(1);
  rms_norm<double>({1, 2}, 0, std::vector<double>{3, 4}, std::vector<double>{1, 2}, y, statistics);
  CHECK(y[0] == Approx(3 / std::sqrt(12.5)));
  CHECK(y[1] == Approx(8 / std::sqrt(12.5)));
  CHECK(statistics[0] == Approx(1 / std::sqrt(12.5)));
}

TEST_CASE("norms in fp32 agree with fp64 on awkward shapes") {
  for (const Rows& shape : awkward_rows) {
    expect_fp32_near_fp64<LayerNorm>(shape);
    expect_fp32_near_fp64<RmsNorm>(shape);
  }
}

TEST_CASE("a row of one is the shift alone, and gives nothing back") {
  LayerNorm<double> norm({3, 1});
  norm.run();
  for (const double y : norm.y) CHECK(y == norm.shift[0]);
  for (const double dx : norm.dx) CHECK(dx == 0);
}

TEST_CASE("gradients of norms agree with finite differences") {
  expect_gradients<LayerNorm>({3, 7});
  expect_gradients<LayerNorm>({1, 13});
  expect_gradients<RmsNorm>({3, 7});
  expect_gradients<RmsNorm>({2, 2});
}

TEST_CASE("RMS norm of one column keeps the sign alone, and gives back what epsilon leaves") {
  // y = s x (x^2 + e)^(-1/2), so dy/dx = s e (x^2 + e)^(-3/2).
  RmsNorm<double> norm({5, 1});
  norm.run();
  for (std::size_t i = 0; i < 5; ++i) {
    const double slope = norm.scale[0] * epsilon * std::pow(norm.x[i] * norm.x[i] + epsilon, -1.5);
    CHECK(norm.dx[i] == Approx(norm.dy[i] * slope).epsilon(1e-9));
  }
}

}  // namespace

}  // namespace stratagem::kernels::norm_test

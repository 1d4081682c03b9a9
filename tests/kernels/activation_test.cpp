// Nonlinearities: known values, fp32 against fp64, gradients against finite differences.
#include "kernels/activation.hpp"

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::activation_test {

namespace {

/// A nonlinearity of one input, and whether its gradient reads the result rather than the input.
template <typename T>
struct Bend {
  const char* name;
  void (*forward)(In<T>, Out<T>);
  void (*gradient)(In<T>, In<T>, Out<T>);
  bool of_result;
};

template <typename T>
std::vector<Bend<T>> bends() {
  return {{"gelu", gelu<T>, gelu_gradient<T>, false},
          {"relu", relu<T>, relu_gradient<T>, true},
          {"squared relu", squared_relu<T>, squared_relu_gradient<T>, false},
          {"sigmoid", sigmoid<T>, sigmoid_gradient<T>, true},
          {"tanh", tanh<T>, tanh_gradient<T>, true}};
}

template <typename T>
struct Result {
  std::vector<T> y, dx;
};

template <typename T>
Result<T> run(const Bend<T>& bend, const std::vector<T>& x, const std::vector<T>& dy) {
  Result<T> result{std::vector<T>(x.size()), std::vector<T>(x.size())};
  bend.forward(x, result.y);
  bend.gradient(dy, bend.of_result ? result.y : x, result.dx);
  return result;
}

TEST_CASE("GeLU in its tanh form, by the standard library's tanh") {
  for (const double x : {-12.0, -3.0, -0.5, 0.0, 0.1, 1.0, 4.0, 30.0}) {
    std::vector<double> y(1);
    gelu<double>(std::vector<double>{x}, y);
    const double u = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    CHECK(y[0] == Approx(x / 2 * (1 + std::tanh(u))).margin(1e-15));
  }
}

TEST_CASE("far from zero nothing overflows: GeLU is 0 or x, and its gradient 0 or 1") {
  const auto [y, dx] = run<float>(bends<float>()[0], {-60, 60}, {1, 1});
  CHECK(y == std::vector<float>{0, 60});
  CHECK(dx == std::vector<float>{0, 1});
}

TEST_CASE("nonlinearities in fp32 agree with fp64, and gradients with finite differences") {
  for (std::size_t b = 0; b < 3; ++b) {
    const Bend<double> bend = bends<double>()[b];
    CAPTURE(bend.name);
    for (const std::int64_t size : {1, 17, 1023, 4099}) {
      const auto fp32 =
          run(bends<float>()[b], random_operand<float>(size, 1), random_operand<float>(size, 2));
      const auto fp64 = run(bend, random_operand<double>(size, 1), random_operand<double>(size, 2));
      CHECK(relative_error(fp32.y, fp64.y) < fp32_error);
      CHECK(relative_error(fp32.dx, fp64.dx) < fp32_error);
    }
    const auto x = random_operand<double>(29, 3), dy = random_operand<double>(29, 4);
    const auto loss = [&](const std::vector<double>& at) {
      return weighted_sum(run(bend, at, dy).y, dy);
    };
    CHECK(relative_error(run(bend, x, dy).dx, finite_differences(x, loss)) < 1e-8);
  }
}

template <typename T>
std::vector<std::vector<T>> run_swiglu(const std::vector<T>& gate, const std::vector<T>& up,
                                       const std::vector<T>& dy) {
  std::vector<T> y(gate.size()), dgate(gate.size()), dup(gate.size());
  swiglu<T>(gate, up, y);
  swiglu_gradient<T>(dy, gate, up, dgate, dup);
  return {y, dgate, dup};
}

TEST_CASE("SwiGLU: fp32 agrees with fp64, gradients with finite differences") {
  for (const std::int64_t size : {1, 31, 4099}) {
    const auto fp32 = run_swiglu(random_operand<float>(size, 1), random_operand<float>(size, 2),
                                 random_operand<float>(size, 3));
    const auto fp64 = run_swiglu(random_operand<double>(size, 1), random_operand<double>(size, 2),
                                 random_operand<double>(size, 3));
    for (std::size_t i = 0; i < 3; ++i) CHECK(relative_error(fp32[i], fp64[i]) < fp32_error);
  }
  const auto gate = random_operand<double>(13, 1), up = random_operand<double>(13, 2),
             dy = random_operand<double>(13, 3);
  const auto gradients = run_swiglu(gate, up, dy);
  CHECK(relative_error(gradients[1], finite_differences(gate, [&](const auto& at) {
                         return weighted_sum(run_swiglu(at, up, dy)[0], dy);
                       })) < 1e-8);
  CHECK(relative_error(gradients[2], finite_differences(up, [&](const auto& at) {
                         return weighted_sum(run_swiglu(gate, at, dy)[0], dy);
                       })) < 1e-8);
}

}  // namespace

}  // namespace stratagem::kernels::activation_test

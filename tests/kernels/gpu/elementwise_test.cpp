// Elementwise kernels on a GPU against fp64, at sizes that are and are not whole packets.
#include "kernels/elementwise.hpp"

#include "kernels/activation.hpp"
#include "kernels/adam.hpp"
#include "kernels/dropout.hpp"
#include "tests/kernels/gpu/gpu.hpp"

using namespace stratagem::kernels;

namespace {

const std::vector<std::int64_t> sizes = {1, 7, 17, 1024, 4099, 100'003};

/// A kernel of two operands, or of one where `unary` is set, on the GPU and in fp64.
template <typename T>
struct Kernel {
  const char* name;
  void (*device)(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);
  void (*host)(In<double>, In<double>, Out<double>);
};
template <typename T>
struct UnaryKernel {
  const char* name;
  void (*device)(const Stream&, DeviceIn<T>, DeviceOut<T>);
  void (*host)(In<double>, Out<double>);
};

template <typename T>
std::vector<Kernel<T>> kernels_of_two() {
  return {{"add", add<T>, add<double>},
          {"multiply", multiply<T>, multiply<double>},
          {"gelu gradient", gelu_gradient<T>, gelu_gradient<double>},
          {"relu gradient", relu_gradient<T>, relu_gradient<double>},
          {"squared relu gradient", squared_relu_gradient<T>, squared_relu_gradient<double>},
          {"sigmoid gradient", sigmoid_gradient<T>, sigmoid_gradient<double>},
          {"swiglu", swiglu<T>, swiglu<double>}};
}
template <typename T>
std::vector<UnaryKernel<T>> kernels_of_one() {
  return {{"gelu", gelu<T>, gelu<double>},
          {"relu", relu<T>, relu<double>},
          {"squared relu", squared_relu<T>, squared_relu<double>},
          {"sigmoid", sigmoid<T>, sigmoid<double>}};
}

TEST_CASE("elementwise kernels of one and of two operands agree with fp64") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const std::int64_t size : sizes) {
      CAPTURE(size, sizeof(T));
      const auto a = random_both<T>(size, 1), b = random_both<T>(size, 2);
      std::vector<double> reference(size);
      for (const Kernel<T>& kernel : kernels_of_two<T>()) {
        CAPTURE(kernel.name);
        const auto y = room<T>(size);
        kernel.device(stream(), a, b, y);
        kernel.host(a.values, b.values, reference);
        CHECK(error_of(y, reference) <= tolerance<T>);
      }
      for (const UnaryKernel<T>& kernel : kernels_of_one<T>()) {
        CAPTURE(kernel.name);
        const auto y = room<T>(size);
        kernel.device(stream(), a, y);
        kernel.host(a.values, reference);
        CHECK(error_of(y, reference) <= tolerance<T>);
      }
    }
  });
}

TEST_CASE("operands that begin between packets") {
  if (no_device()) return;
  for_types([]<typename T>() {
    const std::size_t size = 1000;
    const auto a = random_both<T>(1001, 1), b = random_both<T>(1003, 2);
    const auto y = room<T>(1002);
    add<T>(stream(), a.device.span().subspan(1, size), b.device.span().subspan(3, size),
           y.span().subspan(2, size));
    const auto result = on_host(stream(), y);
    for (std::size_t i = 0; i < size; ++i) {
      const double exact = a.values[i + 1] + b.values[i + 3];
      CHECK(std::abs(static_cast<double>(result[i + 2]) - exact) <= tolerance<T> * 2);
    }
    CHECK(std::isnan(static_cast<float>(result[1])));  // nothing is written beside them
  });
}

TEST_CASE("far from zero nothing overflows: GeLU is 0 or x, and its gradient 0 or 1") {
  if (no_device()) return;
  const auto x = both<float>({-60, 60}), dy = both<float>({1, 1});
  const auto y = room<float>(2), dx = room<float>(2);
  gelu<float>(stream(), x, y);
  gelu_gradient<float>(stream(), dy, x, dx);
  CHECK(on_host(stream(), y) == std::vector<float>{0, 60});
  CHECK(on_host(stream(), dx) == std::vector<float>{0, 1});
}

TEST_CASE("SwiGLU's gradients agree with fp64") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const std::int64_t size : sizes) {
      const auto dy = random_both<T>(size, 1), gate = random_both<T>(size, 2);
      const auto up = random_both<T>(size, 3);
      const auto dgate = room<T>(size), dup = room<T>(size);
      std::vector<double> gate_reference(size), up_reference(size);
      swiglu_gradient<T>(stream(), dy, gate, up, dgate, dup);
      swiglu_gradient<double>(dy.values, gate.values, up.values, gate_reference, up_reference);
      CHECK(error_of(dgate, gate_reference) <= tolerance<T>);
      CHECK(error_of(dup, up_reference) <= tolerance<T>);
    }
  });
}

TEST_CASE("SiLU, and gates in turns with their factors, agree with fp64") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const std::int64_t size : sizes) {
      const auto dy = random_both<T>(size, 1), x = random_both<T>(size, 2);
      const auto pairs = random_both<T>(2 * size, 3);
      const auto y = room<T>(size), dx = room<T>(size), dpairs = room<T>(2 * size);
      const std::vector<double> ones(size, 1);
      std::vector<double> reference(size), unused(size), gate(size), up(size), both_ways(2 * size);
      silu<T>(stream(), x, y);
      swiglu<double>(x.values, ones, reference);
      CHECK(error_of(y, reference) <= tolerance<T>);
      silu_gradient<T>(stream(), dy, x, dx);
      swiglu_gradient<double>(dy.values, x.values, ones, reference, unused);
      CHECK(error_of(dx, reference) <= tolerance<T>);
      for (std::int64_t i = 0; i < size; ++i) {
        gate[i] = pairs.values[2 * i];
        up[i] = pairs.values[2 * i + 1];
      }
      swiglu_pairs<T>(stream(), pairs, y);
      swiglu<double>(gate, up, reference);
      CHECK(error_of(y, reference) <= tolerance<T>);
      swiglu_pairs_gradient<T>(stream(), dy, pairs, dpairs);
      swiglu_gradient<double>(dy.values, gate, up, reference, unused);
      for (std::int64_t i = 0; i < size; ++i) {
        both_ways[2 * i] = reference[i];
        both_ways[2 * i + 1] = unused[i];
      }
      CHECK(error_of(dpairs, both_ways) <= tolerance<T>);
    }
  });
}

TEST_CASE("a constant, rounded, everywhere") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const std::int64_t size : sizes) {
      const auto y = room<T>(size);
      fill<T>(stream(), 0.3, y);
      CHECK(error_of(y, std::vector<double>(size, static_cast<T>(0.3F))) == 0);
    }
  });
}

TEST_CASE("a bias in every row, and the sums over rows that it receives") {
  if (no_device()) return;
  for_types([]<typename T>() {
    std::vector<Rows> shapes = awkward_rows;
    shapes.push_back({4099, 48});  // rows shared out among blocks
    shapes.push_back({3, 5003});   // fewer rows than blocks
    for (const Rows& shape : shapes) {
      CAPTURE(shape.rows, shape.columns, sizeof(T));
      const auto x = random_both<T>(shape.size(), 1), bias = random_both<T>(shape.columns, 2);
      const auto y = room<T>(shape.size()), sums = room<T>(shape.columns);
      std::vector<double> y_reference(shape.size()), sums_reference(shape.columns);
      bias_add<T>(stream(), shape, x, bias, y);
      bias_add<double>(shape, x.values, bias.values, y_reference);
      column_sums<T>(stream(), shape, x, sums);
      column_sums<double>(shape, x.values, sums_reference);
      CHECK(error_of(y, y_reference) <= tolerance<T>);
      CHECK(error_of(sums, sums_reference) <= tolerance<T>);
    }
  });
}

template <typename From, typename To>
void expect_cast(const std::vector<float>& numbers) {
  std::vector<From> from;
  for (const float number : numbers) from.push_back(From(number));
  const auto x = both<From>(from);
  const auto y = room<To>(static_cast<std::int64_t>(from.size()));
  cast<From, To>(stream(), x, y);
  const auto result = on_host(stream(), y);
  for (std::size_t i = 0; i < from.size(); ++i)
    CHECK(static_cast<float>(result[i]) == static_cast<float>(To(static_cast<float>(from[i]))));
}

TEST_CASE("casts round as the host rounds, bit by bit: ties, the smallest, the infinite") {
  if (no_device()) return;
  std::vector<float> numbers = {
      0,        1,        1.00048828125F, 1.00146484375F, 65519.996F,  65520, -65536,
      0x1p-24F, 0x1p-25F, 0x1.8p-24F,     1.00390625F,    1.01171875F, 1e38F, -0x1p-14F};
  for (const float number : random_operand<float>(1000, 1)) numbers.push_back(number);
  expect_cast<float, Half>(numbers);
  expect_cast<Half, float>(numbers);
  if (!stream().device().at_least(8)) return;
  expect_cast<float, BFloat16>(numbers);
  expect_cast<BFloat16, float>(numbers);
  expect_cast<Half, BFloat16>(numbers);
  expect_cast<BFloat16, Half>(numbers);
}

TEST_CASE("bf16 is refused by name where the GPU has none") {
  if (no_device() || stream().device().at_least(8)) return;
  const auto x = room<BFloat16>(1);
  CHECK_THROWS_WITH(add<BFloat16>(stream(), x, x, x), ContainsSubstring("bf16"));
}

TEST_CASE("steps of Adam agree with fp64, whatever the gradient's type") {
  if (no_device()) return;
  for_types([]<typename T>() {
    const std::int64_t size = 4099;
    auto p = random_both<float>(size, 1);
    auto m = both<float>(zeros<float>(size)), v = both<float>(zeros<float>(size));
    for (std::int64_t step = 1; step <= 5; ++step) {
      const auto gradient = random_both<T>(size, 10 + step);
      const Adam settings{.weight_decay = 0.01, .step = step, .gradient_scale = 8};
      adam<T>(stream(), settings, gradient, p.device, m.device, v.device);
      adam<double>(settings, gradient.values, p.values, m.values, v.values);
    }
    CHECK(error_of(p.device, p.values) <= fp32_error);  // the states are fp32
    CHECK(error_of(m.device, m.values) <= fp32_error);
    CHECK(error_of(v.device, v.values) <= fp32_error);
  });
}

const std::vector<Part> parts = {
    whole_of({1}),
    whole_of({1023}),
    whole_of({64, 128}),
    {.whole = {5, 7, 11}, .begin = {1, 2, 3}, .extent = {3, 4, 5}},
    {.whole = {8, 6, 16}, .begin = {4, 0, 0}, .extent = {2, 6, 16}},
    {.whole = {3, 10, 4, 4}, .begin = {0, 3, 0, 0}, .extent = {3, 5, 4, 4}}};

TEST_CASE("dropout keeps the same elements as on the host, of every part") {
  if (no_device()) return;
  for_types([]<typename T>() {
    for (const Part& part : parts) {
      const auto x = random_both<T>(part.size(), 1), dy = random_both<T>(part.size(), 2);
      const auto y = room<T>(part.size()), dx = room<T>(part.size());
      const auto mask = room<std::int8_t>(part.size());
      std::vector<double> reference(part.size());
      std::vector<std::int8_t> mask_reference(part.size());
      const RandomStream random{.seed = 7, .stream = 3};
      dropout<T>(stream(), part, 0.3, random, x, y, mask);
      dropout<double>(part, 0.3, random, x.values, reference, mask_reference);
      CHECK(on_host(stream(), mask) == mask_reference);
      CHECK(error_of(y, reference) <= tolerance<T>);
      dropout_gradient<T>(stream(), 0.3, dy, mask, dx);
      dropout_gradient<double>(0.3, dy.values, mask_reference, reference);
      CHECK(error_of(dx, reference) <= tolerance<T>);
    }
  });
}

}  // namespace

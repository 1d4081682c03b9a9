// Elementwise nonlinearities. tanh and sigmoid both come from exp, which Eigen computes in vectors.
#include "kernels/activation.hpp"

#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {
namespace {

template <typename T>
constexpr T gelu_slope = static_cast<T>(0.79788456080286535588);  // sqrt(2 / pi)
template <typename T>
constexpr T gelu_cubic = static_cast<T>(0.044715);

template <typename X>
auto logistic(const X& x) {
  using T = typename X::Scalar;
  return T{1} / (T{1} + (-x).exp());
}

/// Elements at a time whose intermediate results stay in the nearest cache.
constexpr Eigen::Index stretch = 1024;

/// Calls `work(begin, length)` for one stretch after another.
template <typename Work>
void in_stretches(std::size_t size, const Work& work) {
  const auto all = static_cast<Eigen::Index>(size);
  for (Eigen::Index begin = 0; begin < all; begin += stretch)
    work(begin, std::min(stretch, all - begin));
}

}  // namespace

template <typename T>
void gelu(In<T> x, Out<T> y) {
  expect_size(static_cast<std::int64_t>(y.size()), x);
  const auto in = all_of<T>(x);
  auto out = all_of<T>(y);
  // (1 + tanh(u)) / 2 is the logistic function of 2u.
  out = in * logistic(2 * gelu_slope<T> * (in + gelu_cubic<T> * in.cube()));
}

template <typename T>
void gelu_gradient(In<T> dy, In<T> x, Out<T> dx) {
  expect_size(static_cast<std::int64_t>(dx.size()), dy, x);
  in_stretches(dx.size(), [&](Eigen::Index begin, Eigen::Index length) {
    const auto in = all_of<T>(x).segment(begin, length);
    const Column<T> half = logistic(2 * gelu_slope<T> * (in + gelu_cubic<T> * in.cube()));
    const auto inner = 2 * gelu_slope<T> * (1 + 3 * gelu_cubic<T> * in.square());
    all_of<T>(dx).segment(begin, length) =
        all_of<T>(dy).segment(begin, length) * half * (1 + in * (1 - half) * inner);
  });
}

template <typename T>
void relu(In<T> x, Out<T> y) {
  expect_size(static_cast<std::int64_t>(y.size()), x);
  all_of<T>(y) = all_of<T>(x).max(T{0});
}

template <typename T>
void relu_gradient(In<T> dy, In<T> y, Out<T> dx) {
  expect_size(static_cast<std::int64_t>(dx.size()), dy, y);
  all_of<T>(dx) = (all_of<T>(y) > T{0}).select(all_of<T>(dy), T{0});
}

template <typename T>
void squared_relu(In<T> x, Out<T> y) {
  expect_size(static_cast<std::int64_t>(y.size()), x);
  all_of<T>(y) = all_of<T>(x).max(T{0}).square();
}

template <typename T>
void squared_relu_gradient(In<T> dy, In<T> x, Out<T> dx) {
  expect_size(static_cast<std::int64_t>(dx.size()), dy, x);
  all_of<T>(dx) = 2 * all_of<T>(x).max(T{0}) * all_of<T>(dy);
}

template <typename T>
void sigmoid(In<T> x, Out<T> y) {
  expect_size(static_cast<std::int64_t>(y.size()), x);
  all_of<T>(y) = logistic(all_of<T>(x));
}

template <typename T>
void sigmoid_gradient(In<T> dy, In<T> y, Out<T> dx) {
  expect_size(static_cast<std::int64_t>(dx.size()), dy, y);
  all_of<T>(dx) = all_of<T>(dy) * all_of<T>(y) * (1 - all_of<T>(y));
}

template <typename T>
void tanh(In<T> x, Out<T> y) {
  expect_size(static_cast<std::int64_t>(y.size()), x);
  all_of<T>(y) = 2 * logistic(2 * all_of<T>(x)) - 1;
}

template <typename T>
void tanh_gradient(In<T> dy, In<T> y, Out<T> dx) {
  expect_size(static_cast<std::int64_t>(dx.size()), dy, y);
  all_of<T>(dx) = all_of<T>(dy) * (1 - all_of<T>(y).square());
}

template <typename T>
void swiglu(In<T> gate, In<T> up, Out<T> y) {
  expect_size(static_cast<std::int64_t>(y.size()), gate, up);
  all_of<T>(y) = all_of<T>(gate) * logistic(all_of<T>(gate)) * all_of<T>(up);
}

template <typename T>
void swiglu_gradient(In<T> dy, In<T> gate, In<T> up, Out<T> dgate, Out<T> dup) {
  expect_size(static_cast<std::int64_t>(dy.size()), gate, up, dgate, dup);
  in_stretches(dy.size(), [&](Eigen::Index begin, Eigen::Index length) {
    const auto g = all_of<T>(gate).segment(begin, length);
    const auto gradient = all_of<T>(dy).segment(begin, length);
    const Column<T> s = logistic(g);
    all_of<T>(dgate).segment(begin, length) =
        gradient * all_of<T>(up).segment(begin, length) * s * (1 + g * (1 - s));
    all_of<T>(dup).segment(begin, length) = gradient * g * s;
  });
}

#define INSTANTIATE(T)                                          \
  template void gelu<T>(In<T>, Out<T>);                         \
  template void gelu_gradient<T>(In<T>, In<T>, Out<T>);         \
  template void relu<T>(In<T>, Out<T>);                         \
  template void relu_gradient<T>(In<T>, In<T>, Out<T>);         \
  template void squared_relu<T>(In<T>, Out<T>);                 \
  template void squared_relu_gradient<T>(In<T>, In<T>, Out<T>); \
  template void sigmoid<T>(In<T>, Out<T>);                      \
  template void sigmoid_gradient<T>(In<T>, In<T>, Out<T>);      \
  template void tanh<T>(In<T>, Out<T>);                         \
  template void tanh_gradient<T>(In<T>, In<T>, Out<T>);         \
  template void swiglu<T>(In<T>, In<T>, Out<T>);                \
  template void swiglu_gradient<T>(In<T>, In<T>, In<T>, Out<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

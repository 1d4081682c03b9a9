// Elementwise nonlinearities on a GPU.
#include "kernels/activation.hpp"
#include "kernels/inside/each.cuh"
#include "kernels/inside/expect_type.cuh"

namespace stratagem::kernels {

namespace gates {

/// A gate and its factor, which lie side by side, as one element: they move in whole packets.
template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T gate, up;
};
template <typename T>
__device__ Pair<T> widen(Pair<T> pair) {
  return pair;
}

}  // namespace gates

namespace {

using gates::Pair;

constexpr float gelu_slope = 0.797884560802865F;  // sqrt(2 / pi)
constexpr float gelu_cubic = 0.044715F;

__device__ float logistic(float x) { return 1.0F / (1.0F + __expf(-x)); }

/// (1 + tanh(u)) / 2 of GeLU, which is the logistic function of 2u.
__device__ float gelu_share(float x) {
  return logistic(2 * gelu_slope * (x + gelu_cubic * x * x * x));
}

struct GeluOf {
  __device__ void operator()(std::int64_t, float x, float& y) const { y = x * gelu_share(x); }
};
struct GeluGradient {
  __device__ void operator()(std::int64_t, float dy, float x, float& dx) const {
    const float share = gelu_share(x);
    const float inner = 2 * gelu_slope * (1 + 3 * gelu_cubic * x * x);
    dx = dy * share * (1 + x * (1 - share) * inner);
  }
};
struct ReluOf {
  __device__ void operator()(std::int64_t, float x, float& y) const { y = x > 0 ? x : 0; }
};
struct ReluGradient {
  __device__ void operator()(std::int64_t, float dy, float y, float& dx) const {
    dx = y > 0 ? dy : 0;
  }
};
struct SquaredReluOf {
  __device__ void operator()(std::int64_t, float x, float& y) const { y = x > 0 ? x * x : 0; }
};
struct SquaredReluGradient {
  __device__ void operator()(std::int64_t, float dy, float x, float& dx) const {
    dx = x > 0 ? 2 * x * dy : 0;
  }
};
struct SigmoidOf {
  __device__ void operator()(std::int64_t, float x, float& y) const { y = logistic(x); }
};
struct SigmoidGradient {
  __device__ void operator()(std::int64_t, float dy, float y, float& dx) const {
    dx = dy * y * (1 - y);
  }
};
struct SwigluOf {
  __device__ void operator()(std::int64_t, float gate, float up, float& y) const {
    y = gate * logistic(gate) * up;
  }
};
struct SwigluGradient {
  __device__ void operator()(std::int64_t, float dy, float gate, float up, float& dgate,
                             float& dup) const {
    const float share = logistic(gate);
    dgate = dy * up * share * (1 + gate * (1 - share));
    dup = dy * gate * share;
  }
};
struct SiluOf {
  __device__ void operator()(std::int64_t, float x, float& y) const { y = x * logistic(x); }
};
struct SiluGradient {
  __device__ void operator()(std::int64_t, float dy, float x, float& dx) const {
    const float share = logistic(x);
    dx = dy * share * (1 + x * (1 - share));
  }
};
struct SwigluOfPairs {
  template <typename T>
  __device__ void operator()(std::int64_t i, const Pair<T>& pair, float& y) const {
    SwigluOf{}(i, widen(pair.gate), widen(pair.up), y);
  }
};
struct SwigluGradientOfPairs {
  template <typename T>
  __device__ void operator()(std::int64_t i, float dy, const Pair<T>& pair,
                             Pair<T>& gradient) const {
    float gate = 0, up = 0;
    SwigluGradient{}(i, dy, widen(pair.gate), widen(pair.up), gate, up);
    gradient = {narrow<T>(gate), narrow<T>(up)};
  }
};
template <typename T>
auto reads_pairs(DeviceIn<T> x) {
  expects(aligned(x.data(), sizeof(Pair<T>)), "pairs begin at a multiple of their size");
  return reads<Pair<T>>({reinterpret_cast<const Pair<T>*>(x.data()), x.size() / 2});
}
template <typename T>
auto writes_pairs(DeviceOut<T> x) {
  expects(aligned(x.data(), sizeof(Pair<T>)), "pairs begin at a multiple of their size");
  return writes<Pair<T>>({reinterpret_cast<Pair<T>*>(x.data()), x.size() / 2});
}

template <typename T, typename Work, typename... In>
void bend(const Stream& stream, const Work& work, DeviceOut<T> y, In... in) {
  expect_type<T>(stream);
  expect_size(static_cast<std::int64_t>(y.size()), in...);
  for_each(stream, y.size(), work, reads<T>(in)..., writes<T>(y));
}

}  // namespace

template <typename T>
void gelu(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y) {
  bend<T>(stream, GeluOf{}, y, x);
}
template <typename T>
void gelu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> x, DeviceOut<T> dx) {
  bend<T>(stream, GeluGradient{}, dx, dy, x);
}

template <typename T>
void relu(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y) {
  bend<T>(stream, ReluOf{}, y, x);
}
template <typename T>
void relu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> y, DeviceOut<T> dx) {
  bend<T>(stream, ReluGradient{}, dx, dy, y);
}

template <typename T>
void squared_relu(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y) {
  bend<T>(stream, SquaredReluOf{}, y, x);
}
template <typename T>
void squared_relu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> x, DeviceOut<T> dx) {
  bend<T>(stream, SquaredReluGradient{}, dx, dy, x);
}

template <typename T>
void sigmoid(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y) {
  bend<T>(stream, SigmoidOf{}, y, x);
}
template <typename T>
void sigmoid_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> y, DeviceOut<T> dx) {
  bend<T>(stream, SigmoidGradient{}, dx, dy, y);
}

template <typename T>
void swiglu(const Stream& stream, DeviceIn<T> gate, DeviceIn<T> up, DeviceOut<T> y) {
  bend<T>(stream, SwigluOf{}, y, gate, up);
}
template <typename T>
void swiglu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> gate, DeviceIn<T> up,
                     DeviceOut<T> dgate, DeviceOut<T> dup) {
  expect_type<T>(stream);
  expect_size(static_cast<std::int64_t>(dy.size()), gate, up, dgate, dup);
  for_each(stream, dy.size(), SwigluGradient{}, reads<T>(dy), reads<T>(gate), reads<T>(up),
           writes<T>(dgate), writes<T>(dup));
}

template <typename T>
void silu(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y) {
  bend<T>(stream, SiluOf{}, y, x);
}
template <typename T>
void silu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> x, DeviceOut<T> dx) {
  bend<T>(stream, SiluGradient{}, dx, dy, x);
}

template <typename T>
void swiglu_pairs(const Stream& stream, DeviceIn<T> pairs, DeviceOut<T> y) {
  expect_type<T>(stream);
  expect_size(2 * static_cast<std::int64_t>(y.size()), pairs);
  for_each(stream, y.size(), SwigluOfPairs{}, reads_pairs<T>(pairs), writes<T>(y));
}
template <typename T>
void swiglu_pairs_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> pairs,
                           DeviceOut<T> dpairs) {
  expect_type<T>(stream);
  expect_size(2 * static_cast<std::int64_t>(dy.size()), pairs, dpairs);
  for_each(stream, dy.size(), SwigluGradientOfPairs{}, reads<T>(dy), reads_pairs<T>(pairs),
           writes_pairs<T>(dpairs));
}

#define INSTANTIATE(T)                                                                           \
  template void gelu<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                               \
  template void gelu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);         \
  template void relu<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                               \
  template void relu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);         \
  template void squared_relu<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                       \
  template void squared_relu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>); \
  template void sigmoid<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                            \
  template void sigmoid_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);      \
  template void swiglu<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);                \
  template void silu<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                               \
  template void silu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>);         \
  template void swiglu_pairs<T>(const Stream&, DeviceIn<T>, DeviceOut<T>);                       \
  template void swiglu_pairs_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>); \
  template void swiglu_gradient<T>(const Stream&, DeviceIn<T>, DeviceIn<T>, DeviceIn<T>,         \
                                   DeviceOut<T>, DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

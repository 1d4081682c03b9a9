// Activation functions: GeLU, ReLU, sigmoid, SwiGLU, with their gradients.
#pragma once

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// GeLU in its tanh form: x / 2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), as GPT-2 has it.
/// Hendrycks and Gimpel, Gaussian error linear units, arXiv:1606.08415, section 2.
template <typename T>
void gelu(In<T> x, Out<T> y);
template <typename T>
void gelu_gradient(In<T> dy, In<T> x, Out<T> dx);
template <typename T>
void gelu(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y);
template <typename T>
void gelu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> x, DeviceOut<T> dx);

template <typename T>
void relu(In<T> x, Out<T> y);
/// From the result y.
template <typename T>
void relu_gradient(In<T> dy, In<T> y, Out<T> dx);
template <typename T>
void relu(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y);
template <typename T>
void relu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> y, DeviceOut<T> dx);

/// max(x, 0)^2. So et al., Primer, arXiv:2109.08668, section 4.
template <typename T>
void squared_relu(In<T> x, Out<T> y);
template <typename T>
void squared_relu_gradient(In<T> dy, In<T> x, Out<T> dx);
template <typename T>
void squared_relu(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y);
template <typename T>
void squared_relu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> x, DeviceOut<T> dx);

template <typename T>
void sigmoid(In<T> x, Out<T> y);
/// From the result y.
template <typename T>
void sigmoid_gradient(In<T> dy, In<T> y, Out<T> dx);
template <typename T>
void sigmoid(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y);
template <typename T>
void sigmoid_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> y, DeviceOut<T> dx);

template <typename T>
void tanh(In<T> x, Out<T> y);
/// From the result y.
template <typename T>
void tanh_gradient(In<T> dy, In<T> y, Out<T> dx);

/// y = x * sigmoid(x), a gated unit whose other factor is 1. On processors `swiglu` computes it.
template <typename T>
void silu(const Stream& stream, DeviceIn<T> x, DeviceOut<T> y);
template <typename T>
void silu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> x, DeviceOut<T> dx);

/// y = gate * sigmoid(gate) * up. Shazeer, GLU variants improve transformer, arXiv:2002.05202.
template <typename T>
void swiglu(In<T> gate, In<T> up, Out<T> y);
template <typename T>
void swiglu_gradient(In<T> dy, In<T> gate, In<T> up, Out<T> dgate, Out<T> dup);
template <typename T>
void swiglu(const Stream& stream, DeviceIn<T> gate, DeviceIn<T> up, DeviceOut<T> y);
template <typename T>
void swiglu_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> gate, DeviceIn<T> up,
                     DeviceOut<T> dgate, DeviceOut<T> dup);
/// The same where gates and factors lie in turns: element 2i is a gate, 2i + 1 its factor.
template <typename T>
void swiglu_pairs(const Stream& stream, DeviceIn<T> pairs, DeviceOut<T> y);
template <typename T>
void swiglu_pairs_gradient(const Stream& stream, DeviceIn<T> dy, DeviceIn<T> pairs,
                           DeviceOut<T> dpairs);

}  // namespace stratagem::kernels

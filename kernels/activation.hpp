// What bends between two matrix products: GeLU, ReLU, sigmoid, SwiGLU, with their gradients.
#pragma once

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// GeLU in its tanh form: x / 2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), as GPT-2 has it.
/// Hendrycks and Gimpel, Gaussian error linear units, arXiv:1606.08415, section 2.
template <typename T>
void gelu(In<T> x, Out<T> y);
template <typename T>
void gelu_gradient(In<T> dy, In<T> x, Out<T> dx);

template <typename T>
void relu(In<T> x, Out<T> y);
/// From the result y.
template <typename T>
void relu_gradient(In<T> dy, In<T> y, Out<T> dx);

template <typename T>
void sigmoid(In<T> x, Out<T> y);
/// From the result y.
template <typename T>
void sigmoid_gradient(In<T> dy, In<T> y, Out<T> dx);

/// y = gate * sigmoid(gate) * up. Shazeer, GLU variants improve transformer, arXiv:2002.05202.
template <typename T>
void swiglu(In<T> gate, In<T> up, Out<T> y);
template <typename T>
void swiglu_gradient(In<T> dy, In<T> gate, In<T> up, Out<T> dgate, Out<T> dup);

}  // namespace stratagem::kernels

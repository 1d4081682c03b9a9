// One step of Adam or AdamW over some elements of the parameters.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// Kingma and Ba, Adam, arXiv:1412.6980, algorithm 1; `weight_decay` as in AdamW, Loshchilov and
/// Hutter, arXiv:1711.05101: taken off the parameter, not added to the gradient.
struct Adam {
  double learning_rate = 1e-3;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::int64_t step = 1;      ///< counted from 1
  double gradient_scale = 1;  ///< what the gradient is to be divided by first
};

/// Updates both moments, then the parameters.
template <typename T>
void adam(const Adam& settings, In<T> gradient, Out<T> parameter, Out<T> momentum, Out<T> variance);

/// On a GPU parameters and moments are fp32 whatever the gradient's type, as where training in fp16
/// or bf16 keeps a main copy; the working copy is their `cast`.
template <typename T>
void adam(const Stream& stream, const Adam& settings, DeviceIn<T> gradient,
          DeviceOut<float> parameter, DeviceOut<float> momentum, DeviceOut<float> variance);

}  // namespace stratagem::kernels

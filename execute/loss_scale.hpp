// Scales the loss, so that gradients in fp16 do not underflow.
#pragma once

#include <cmath>
#include <type_traits>

#include "execute/value.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {

/// What gradients are multiplied with before they are rounded to T: the largest power of two with
/// which `weight`, the gradient of one row's loss, is not above 1. 1 for types with the exponents
/// of fp32. It stays for the whole training: nobody looks for gradients that become infinite. As in
/// Micikevicius et al., Mixed precision training, arXiv:1710.03740, section 3.2, a constant.
template <typename T>
double loss_scale(double weight) {
  return std::is_same_v<T, kernels::Half> ? std::exp2(std::floor(-std::log2(weight))) : 1;
}

/// A gradient as it would be without a scale: of one that is 1 itself, else changed where it lies,
/// which is a copy wherever there is a scale.
template <typename T>
Shared<T> unscaled(Shared<T> gradient, double scale) {
  if (scale == 1) return gradient;
  for (T& number : gradient->data) number = static_cast<T>(number / scale);
  return gradient;
}

}  // namespace stratagem::execute

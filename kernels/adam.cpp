// Adam, elementwise.
#include "kernels/adam.hpp"

#include <cmath>

#include "kernels/inside/rows.hpp"

namespace stratagem::kernels {

template <typename T>
void adam(const Adam& a, In<T> gradient, Out<T> parameter, Out<T> momentum, Out<T> variance) {
  expect_size(static_cast<std::int64_t>(gradient.size()), parameter, momentum, variance);
  // 1 - beta before rounding: in fp32 1 - 0.999 is off by 1e-5 of itself.
  const T beta_1 = static_cast<T>(a.beta_1), rest_1 = static_cast<T>(1 - a.beta_1);
  const T beta_2 = static_cast<T>(a.beta_2), rest_2 = static_cast<T>(1 - a.beta_2);
  const auto step = static_cast<double>(a.step);
  const T rate = static_cast<T>(a.learning_rate / (1 - std::pow(a.beta_1, step)));
  const T unbiased = static_cast<T>(1 / std::sqrt(1 - std::pow(a.beta_2, step)));
  const T epsilon = static_cast<T>(a.epsilon);
  const T kept = static_cast<T>(1 - a.learning_rate * a.weight_decay);
  const T unscaled = static_cast<T>(1 / a.gradient_scale);
  const std::size_t size = gradient.size();
  for (std::size_t i = 0; i < size; ++i) {  // one pass: every state is read and written once
    const T g = gradient[i] * unscaled;
    momentum[i] = beta_1 * momentum[i] + rest_1 * g;
    variance[i] = beta_2 * variance[i] + rest_2 * g * g;
    parameter[i] =
        kept * parameter[i] - rate * momentum[i] / (std::sqrt(variance[i]) * unbiased + epsilon);
  }
}

#define INSTANTIATE(T) template void adam<T>(const Adam&, In<T>, Out<T>, Out<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

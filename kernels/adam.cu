// Adam on a GPU: one pass over a gradient and three states in fp32.
#include <cmath>

#include "kernels/adam.hpp"
#include "kernels/inside/each.cuh"
#include "kernels/inside/expect_type.cuh"

namespace stratagem::kernels {
namespace {

struct AdamStep {
  float beta_1, rest_1, beta_2, rest_2;  // rest: 1 - beta before rounding
  float rate, unbiased, epsilon, kept, unscaled;

  __device__ void operator()(std::int64_t, float scaled, float& parameter, float& momentum,
                             float& variance) const {
    const float gradient = scaled * unscaled;
    momentum = beta_1 * momentum + rest_1 * gradient;
    variance = beta_2 * variance + rest_2 * gradient * gradient;
    parameter = kept * parameter - rate * momentum / (sqrtf(variance) * unbiased + epsilon);
  }
};

AdamStep step_of(const Adam& a) {
  const auto step = static_cast<double>(a.step);
  const auto narrowed = [](double x) { return static_cast<float>(x); };
  return {.beta_1 = narrowed(a.beta_1),
          .rest_1 = narrowed(1 - a.beta_1),
          .beta_2 = narrowed(a.beta_2),
          .rest_2 = narrowed(1 - a.beta_2),
          .rate = narrowed(a.learning_rate / (1 - std::pow(a.beta_1, step))),
          .unbiased = narrowed(1 / std::sqrt(1 - std::pow(a.beta_2, step))),
          .epsilon = narrowed(a.epsilon),
          .kept = narrowed(1 - a.learning_rate * a.weight_decay),
          .unscaled = narrowed(1 / a.gradient_scale)};
}

}  // namespace

template <typename T>
void adam(const Stream& stream, const Adam& settings, DeviceIn<T> gradient,
          DeviceOut<float> parameter, DeviceOut<float> momentum, DeviceOut<float> variance) {
  expect_type<T>(stream);
  expect_size(static_cast<std::int64_t>(gradient.size()), parameter, momentum, variance);
  for_each(stream, gradient.size(), step_of(settings), reads<T>(gradient),
           updates<float>(parameter), updates<float>(momentum), updates<float>(variance));
}

#define INSTANTIATE(T)                                                             \
  template void adam<T>(const Stream&, const Adam&, DeviceIn<T>, DeviceOut<float>, \
                        DeviceOut<float>, DeviceOut<float>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

// Integrates the distribution of the largest of several normal numbers.
#include "cost/speed_spread.hpp"

#include <cmath>
#include <numbers>

#include "base/input_error.hpp"

namespace stratagem::cost {
namespace {

double normal_distribution(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

/// Beyond `end` the integrand is below 1e-15 for up to 1e8 GPUs.
constexpr double end = 10;
constexpr int steps = 1000;

}  // namespace

double expected_largest(int count) {
  expects(count >= 1, "there is a largest number");
  const auto integrand = [&](double x) {
    return 1 - std::pow(normal_distribution(x), count) - std::pow(normal_distribution(-x), count);
  };
  const double step = end / steps;  // Simpson's rule
  double sum = integrand(0) + integrand(end);
  for (int i = 1; i < steps; ++i) sum += (i % 2 == 1 ? 4 : 2) * integrand(i * step);
  return sum * step / 3;
}

double slowest_of(int gpus, const Profile& profile) {
  if (!profile.speed_spread) return 1;
  return 1 + profile.speed_spread->value * expected_largest(gpus);
}

}  // namespace stratagem::cost

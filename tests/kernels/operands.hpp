// Random operands, and what kernels are held to: a reference in fp64, and finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/operand.hpp"
#include "kernels/philox.hpp"
#include "tests/catch.hpp"

namespace stratagem::kernels {

/// Numbers in [-1, 1), the same in every type: elements are rounded to fp32 first.
template <typename T>
std::vector<T> random_operand(std::int64_t size, std::uint64_t stream) {
  std::vector<T> result(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<T>(2 * uniform({.seed = 20261122, .stream = stream}, i) - 1);
  return result;
}

template <typename T>
std::vector<T> zeros(std::int64_t size) {
  return std::vector<T>(static_cast<std::size_t>(size), T{0});
}

/// How far the worst element is off, relative to itself plus the root mean square of all: sums that
/// cancel have the errors of what they sum up. Infinite where one is no number.
template <typename T>
double relative_error(const std::vector<T>& x, const std::vector<double>& reference) {
  REQUIRE(x.size() == reference.size());
  double squares = 0;
  for (const double value : reference) squares += value * value;
  const double typical = std::sqrt(squares / std::max(static_cast<double>(reference.size()), 1.0));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = std::abs(static_cast<double>(x[i]) - reference[i]);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    if (difference > 0) worst = std::max(worst, difference / (std::abs(reference[i]) + typical));
  }
  return worst;
}

/// Errors that single elements may have against the fp64 reference.
inline constexpr double fp32_error = 1e-5;

/// Central differences of `loss`, a function of vectors, at `x`: error below 1e-9 for what bends as
/// little as ours does, in fp64.
template <typename Loss>
std::vector<double> finite_differences(std::vector<double> x, const Loss& loss) {
  constexpr double step = 1e-5;
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const double above = loss(x);
    x[i] = at - step;
    gradient[i] = (above - loss(x)) / (2 * step);
    x[i] = at;
  }
  return gradient;
}

/// The scalar whose gradient with respect to y is dy.
inline double weighted_sum(const std::vector<double>& y, const std::vector<double>& dy) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
  return sum;
}

/// Sizes of rows and columns that catch what kernels get wrong: one, primes, just beyond what
/// vectors and tiles hold.
inline const std::vector<Rows> awkward_rows = {{1, 1},   {1, 7},    {13, 1},   {5, 17},
                                               {64, 64}, {65, 129}, {31, 1023}};

}  // namespace stratagem::kernels

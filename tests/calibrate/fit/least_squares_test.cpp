// The fit gives back constants that were planted in synthetic observations.
#include "calibrate/fit/least_squares.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::calibrate {
namespace {

/// t = a + s * x observed at x = 1, 2, 4, ..., with the i-th observation off by the factor
/// `off(i)`.
template <typename Off>
Estimate fit_line(double a, double s, const Off& off) {
  constexpr std::size_t count = 40;
  std::vector<std::uint64_t> groups;
  std::vector<double> times;
  const auto x = [](std::size_t i) { return std::pow(2.0, static_cast<double>(i) / 4); };
  for (std::size_t i = 0; i < count; ++i) {
    groups.push_back(i);
    times.push_back((a + s * x(i)) * off(i));
  }
  return fit({{"a", Range::positive, 1, 2}, {"s", Range::share, 0.5, 2}}, groups,
             [&](std::size_t i, const std::vector<double>& at) {
               return std::log((at[0] + at[1] * x(i)) / times[i]);
             });
}

TEST_CASE("planted constants come back from exact observations") {
  const Estimate estimate = fit_line(12, 0.25, [](std::size_t) { return 1.0; });
  // The starts, 1 and 0.5, are a prior that weighs as much as one observation with an error of 10
  // %.
  CHECK(close(estimate.values[0], 12, 0.01));
  CHECK(close(estimate.values[1], 0.25, 0.01));
  CHECK(estimate.median_error < 2e-3);
  CHECK(estimate.cross_validated_error < 2e-3);
}

TEST_CASE("planted constants come back although every eighth observation is ten times too long") {
  const Estimate estimate =
      fit_line(12, 0.25, [](std::size_t i) { return i % 8 == 5 ? 10.0 : 1.0; });
  CHECK(close(estimate.values[0], 12, 0.08));
  CHECK(close(estimate.values[1], 0.25, 0.08));
  CHECK(estimate.median_error < 0.05);
}

TEST_CASE("errors of 5 % either way are the median error, fitted or cross-validated") {
  const Estimate estimate =
      fit_line(12, 0.25, [](std::size_t i) { return i % 2 == 0 ? 1.05 : 1 / 1.05; });
  CHECK(close(estimate.median_error, 0.05, 0.1));
  CHECK(close(estimate.cross_validated_error, 0.05, 0.2));
  CHECK(close(estimate.values[0], 12, 0.02));
}

TEST_CASE("cross-validation shows what the fit itself hides") {
  // One shape alone, three times as slow as the line says: repeated, it would agree with itself in
  // other folds.
  std::vector<std::uint64_t> alone(20, 1);
  alone.resize(40, 2);
  const auto time = [](std::size_t i) { return i < 20 ? 1.0 : 3.0; };
  const Estimate estimate =
      fit({{"t", Range::positive, 1, 3}}, alone,
          [&](std::size_t i, const std::vector<double>& at) { return std::log(at[0] / time(i)); });
  // Each group predicted from the other is wrong by a factor of three: errors of 2 and 2/3.
  CHECK(estimate.cross_validated_error > 0.6);
}

TEST_CASE("parameters that the observations do not determine stay where they start") {
  const Estimate estimate =
      fit({{"seen", Range::positive, 1, 1}, {"unseen", Range::share, 0.8, 1}}, {1, 2, 3, 4, 5, 6},
          [](std::size_t, const std::vector<double>& at) { return std::log(at[0] / 2); });
  CHECK(close(estimate.values[0], 2, 0.15));
  CHECK(close(estimate.values[1], 0.8, 1e-9));
}

TEST_CASE("the same observations always give the same constants") {
  const auto off = [](std::size_t i) { return 1 + 0.1 * static_cast<double>(i % 3); };
  CHECK(fit_line(3, 0.7, off).values == fit_line(3, 0.7, off).values);
}

TEST_CASE("more constants than observations are refused") {
  CHECK_THROWS_AS(fit({{"a", Range::positive, 1, 1}, {"b", Range::positive, 1, 1}}, {1},
                      [](std::size_t, const std::vector<double>&) { return 0.0; }),
                  InputError);
}

}  // namespace
}  // namespace stratagem::calibrate

// Robust nonlinear least squares on logarithms: how measured times become constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stratagem::calibrate {

/// Positive values vary on a logarithmic scale, shares (0..1) on a logistic one, so neither leaves
/// its range.
enum class Range : std::uint8_t { positive, share };

/// What we believe before measuring: `start`, give or take `spread` on the scale of the range (for
/// positive values 0.7 is a factor of two). It decides only where the data do not: it weighs as
/// much as one observation.
struct Parameter {
  std::string name;
  Range range = Range::positive;
  double start = 1;
  double spread = 1;
};

/// The natural logarithm of predicted / measured of one observation.
using LogRatio =
    std::function<double(std::size_t observation, const std::vector<double>& parameters)>;

struct Estimate {
  std::vector<double> values;        ///< in the order of the parameters
  double median_error = 0;           ///< median of |predicted / measured - 1| over all observations
  double cross_validated_error = 0;  ///< the same, each observation predicted without its fold
  std::vector<double> log_ratios;    ///< by observation, with `values`
  double noise = 0;                  ///< of log ratios, which the losses of the fit are relative to
};

inline constexpr int folds = 5;

/// Minimises the sum of Huber losses of the log ratios, which count linearly, not squared,
/// from 1.345 times the noise on, so that outliers do not pull, and of the parameters' distances
/// from their starts in units of the noise. By Levenberg-Marquardt with a numeric Jacobian, twice:
/// with a noise of 10 %, then with what is left over (1.4826 times the median of |log ratio|,
/// between 0.2 and 10 %). groups[i] tells which observations stay together in one fold (repetitions
/// of one shape); groups are dealt out to the folds in the order of a hash, so the folds are the
/// same everywhere. Throws InputError if there are fewer observations than parameters.
Estimate fit(const std::vector<Parameter>& parameters, const std::vector<std::uint64_t>& groups,
             const LogRatio& log_ratio);

/// The log ratio of each observation with constants that are fitted to all families but its own, by
/// the losses of `whole` and downhill from there; none where there are no others, or fewer than
/// parameters. families[i] tells which observations are alike in shape.
std::vector<std::optional<double>> leave_families_out(const std::vector<Parameter>& parameters,
                                                      const Estimate& whole,
                                                      const std::vector<std::string>& families,
                                                      const LogRatio& log_ratio);

}  // namespace stratagem::calibrate

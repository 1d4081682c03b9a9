// Cross-validation: how well a fit predicts shapes that it has not seen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "calibrate/fit/least_squares.hpp"
#include "cost/evidence.hpp"

namespace stratagem::calibrate {

/// A measured point as judging sees it.
struct MeasuredPoint {
  std::string family;              ///< points of one family are left out of a fit together
  std::string shape;               ///< "4096 x 10240 x 8192"
  double size = 0;                 ///< as cost::Evidence::size; 0 where only a rate was measured
  std::optional<double> smallest;  ///< of products: the smallest of m, n and k
  std::optional<double> ranks;     ///< of collectives
  Seconds time;
};

/// Predicted over measured times.
struct JudgedPoint {
  MeasuredPoint point;
  double fitted = 1;               ///< by the constants of the profile
  std::optional<double> unseen;    ///< by a fit without the point's family
  std::optional<double> constant;  ///< by the best constant rate of other families, see below
};

/// All points of one fit, in the order of their tables. `constant` is the median rate (size over
/// time) of the points of other families that are as large: products of at least
/// cost::large_product have one rate, smaller ones another; of collectives, whose rate depends on
/// their ranks, there is none.
struct Judgement {
  int parameters = 0;
  std::vector<JudgedPoint> points;
};

/// Fits once more without each family in turn.
Judgement judge(const std::vector<Parameter>& parameters, const Estimate& estimate,
                std::vector<MeasuredPoint> points, const LogRatio& log_ratio);

/// Of ratios predicted / measured; three digits.
cost::Errors errors_of(const std::vector<double>& ratios);

/// What the profile keeps, but for names: ranges, and errors of what was left out, to three digits.
cost::Evidence evidence_of(const Judgement& judgement);

}  // namespace stratagem::calibrate

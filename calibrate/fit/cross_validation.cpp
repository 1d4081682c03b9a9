// Leaves out one family of shapes after the other, and sums up the errors of its prediction.
#include "calibrate/fit/cross_validation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

namespace stratagem::calibrate {
namespace {

/// Between neighbours in proportion; of sorted values.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double three_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return std::strtod(text.data(), nullptr);
}

bool large(const MeasuredPoint& point) {
  return point.smallest && point.size >= cost::large_product;
}

/// The time at the median rate of the other families, over the measured one.
std::optional<double> at_constant_rate(const std::vector<MeasuredPoint>& points,
                                       const MeasuredPoint& point) {
  if (point.ranks || point.size == 0) return std::nullopt;
  std::vector<double> rates;
  for (const MeasuredPoint& other : points) {
    if (other.family != point.family && other.size > 0 && large(other) == large(point))
      rates.push_back(other.size / other.time.value);
  }
  if (rates.empty()) return std::nullopt;
  std::ranges::sort(rates);
  return point.size / quantile(rates, 0.5) / point.time.value;
}

void widen(std::optional<cost::Range>& range, double value) {
  if (!range) range = cost::Range{.least = value, .most = value};
  range->least = std::min(range->least, value);
  range->most = std::max(range->most, value);
}

/// Of the points that `wanted` takes and that a fit without their family has predicted.
template <typename Wanted>
cost::Compared compared(const Judgement& judgement, const Wanted& wanted) {
  std::vector<double> fit;
  std::vector<double> constant;
  for (const JudgedPoint& judged : judgement.points) {
    if (!judged.unseen || !wanted(judged.point)) continue;
    fit.push_back(*judged.unseen);
    if (judged.constant) constant.push_back(*judged.constant);
  }
  return {.fit = errors_of(fit), .constant = errors_of(constant)};
}

}  // namespace

cost::Errors errors_of(const std::vector<double>& ratios) {
  if (ratios.empty()) return {};
  std::vector<double> errors;
  errors.reserve(ratios.size());
  for (const double ratio : ratios) errors.push_back(std::abs(ratio - 1));
  std::ranges::sort(errors);
  return {.points = errors.size(),
          .median = three_digits(quantile(errors, 0.5)),
          .p90 = three_digits(quantile(errors, 0.9)),
          .p95 = three_digits(quantile(errors, 0.95)),
          .worst = three_digits(errors.back())};
}

Judgement judge(const std::vector<Parameter>& parameters, const Estimate& estimate,
                std::vector<MeasuredPoint> points, const LogRatio& log_ratio) {
  std::vector<std::string> families;
  families.reserve(points.size());
  for (const MeasuredPoint& point : points) families.push_back(point.family);
  const auto unseen = leave_families_out(parameters, estimate, families, log_ratio);
  Judgement judgement{.parameters = static_cast<int>(parameters.size()), .points = {}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    judgement.points.push_back({.point = points[i],
                                .fitted = std::exp(estimate.log_ratios[i]),
                                .unseen = {},
                                .constant = at_constant_rate(points, points[i])});
    if (unseen[i]) judgement.points.back().unseen = std::exp(*unseen[i]);
  }
  return judgement;
}

cost::Evidence evidence_of(const Judgement& judgement) {
  cost::Evidence evidence{.parameters = judgement.parameters};
  std::set<std::string> families;
  std::optional<cost::Range> size;
  std::map<int, std::vector<double>> decades;
  for (const auto& [point, fitted, unseen, constant] : judgement.points) {
    families.insert(point.family);
    if (point.smallest) widen(evidence.smallest, *point.smallest);
    if (point.ranks) widen(evidence.ranks, *point.ranks);
    if (point.size == 0) continue;
    widen(size, point.size);
    if (unseen) decades[static_cast<int>(std::floor(std::log10(point.size)))].push_back(*unseen);
  }
  evidence.families = families.size();
  evidence.size = size.value_or(cost::Range{.least = 1, .most = 1});
  evidence.all = compared(judgement, [](const MeasuredPoint&) { return true; });
  if (evidence.smallest) {
    evidence.large = compared(judgement, &large);
    evidence.small = compared(judgement, [](const MeasuredPoint& point) { return !large(point); });
  }
  for (const auto& [power, ratios] : decades) evidence.decades[power] = errors_of(ratios);
  return evidence;
}

}  // namespace stratagem::calibrate

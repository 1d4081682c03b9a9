// Rounds fitted constants, and records their evidence and errors.
#include "calibrate/fit/chosen.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/quantity_text.hpp"

namespace stratagem::calibrate {

double rounded(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return std::strtod(text.data(), nullptr);
}
Seconds rounded(Seconds value) { return *parse_quantity<Seconds>(to_text(value)); }
BytesPerSecond rounded(BytesPerSecond value) {
  return *parse_quantity<BytesPerSecond>(to_text(value));
}

MeasuredPoint judged(const GemmPoint& point) {
  const auto text = [](std::int64_t size) { return std::to_string(size); };
  return {.family = point.family,
          .shape = (point.batch == 1 ? "" : text(point.batch) + " of ") + text(point.m) + " x " +
                   text(point.n) + " x " + text(point.k),
          .size = 2.0 * static_cast<double>(point.m) * static_cast<double>(point.n) *
                  static_cast<double>(point.k) * static_cast<double>(point.batch),
          .smallest = static_cast<double>(std::min({point.m, point.n, point.k})),
          .time = point.time};
}

MeasuredPoint judged(const StreamingPoint& point) {
  const bool rate_only = point.bytes >= very_large;
  return {.family = point.family,
          .shape = rate_only ? "very large" : to_text(point.bytes),
          .size = rate_only ? 0 : point.bytes.value,
          .time = point.time};
}

MeasuredPoint judged(const AttentionPoint& point) {
  return {
      .family = point.family, .shape = point.shape, .size = point.sizes.keys, .time = point.time};
}

MeasuredPoint judged(const AllReducePoint& point) {
  return {.family = point.family,
          .shape = to_text(point.size) + " on " + std::to_string(point.ranks) + " ranks",
          .size = point.size.value,
          .ranks = point.ranks,
          .time = point.time};
}

void note(Fit& fit, const std::string& what, const std::string& measured_on, bool same_architecture,
          const Estimate& estimate, Judgement judgement) {
  cost::Evidence& evidence = fit.profile.evidence[what] = evidence_of(judgement);
  evidence.of = what;
  evidence.source = measured_on;
  evidence.another_architecture = !same_architecture;
  fit.qualities.push_back({.what = what,
                           .points = estimate.log_ratios.size(),
                           .median_error = estimate.median_error,
                           .cross_validated_error = estimate.cross_validated_error,
                           .judgement = std::move(judgement)});
}

void copy_evidence(cost::Profile& profile, const std::string& from, const std::string& to) {
  if (const auto found = profile.evidence.find(from); found != profile.evidence.end())
    profile.evidence[to] = {.of = found->second.of,
                            .source = found->second.source,
                            .another_architecture = found->second.another_architecture,
                            .parameters = found->second.parameters,
                            .families = found->second.families,
                            .size = found->second.size,
                            .smallest = found->second.smallest};
}

}  // namespace stratagem::calibrate

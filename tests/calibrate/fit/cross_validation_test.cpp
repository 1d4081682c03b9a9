// Errors of what a fit has not seen, against closed forms.
#include "calibrate/fit/cross_validation.hpp"

#include "tests/catch.hpp"

namespace stratagem::calibrate {
namespace {

/// Twenty times of 1 s of the family "short", then twenty of 3 s of "long", predicted by one
/// constant.
struct TwoFamilies {
  std::vector<Parameter> parameters{{"time", Range::positive, 1.7, 3}};
  std::vector<MeasuredPoint> points;
  LogRatio log_ratio = [this](std::size_t i, const std::vector<double>& at) {
    return std::log(at[0] / points[i].time.value);
  };

  TwoFamilies() {
    for (int i = 0; i < 40; ++i) {
      points.push_back({.family = i < 20 ? "short" : "long",
                        .shape = std::to_string(i),
                        .size = i < 20 ? 5e6 : 2e7,
                        .time = i < 20 ? 1_s : 3_s});
    }
  }
  [[nodiscard]] Judgement judged() const {
    return judge(parameters, fit(parameters, std::vector<std::uint64_t>(40, 1), log_ratio), points,
                 log_ratio);
  }
};

TEST_CASE("a family that is left out is predicted by the others alone") {
  const Judgement judgement = TwoFamilies().judged();
  CHECK(judgement.parameters == 1);
  // The short ones by a constant of 3 s, the long ones by one of 1 s.
  CHECK(close(*judgement.points.front().unseen, 3, 0.02));
  CHECK(close(*judgement.points.back().unseen, 1.0 / 3, 0.02));
  CHECK(judgement.points.front().fitted < 3);
}

TEST_CASE("the constant rate is that of the other families") {
  const Judgement judgement = TwoFamilies().judged();
  // 5 MB at 20 MB / 3 s; 20 MB at 5 MB / 1 s, over 3 s
  CHECK(close(*judgement.points.front().constant, 5e6 / (2e7 / 3), 1e-12));
  CHECK(close(*judgement.points.back().constant, 4.0 / 3, 1e-12));
}

TEST_CASE("large products have a constant rate of their own") {
  TwoFamilies two;
  for (MeasuredPoint& point : two.points) {
    point.smallest = 64;
    point.size = point.family == "short" ? 1e9 : 2e11;
  }
  const Judgement judgement = two.judged();
  CHECK_FALSE(judgement.points.front().constant);  // no other family is as small
  const cost::Evidence evidence = evidence_of(judgement);
  CHECK(evidence.small.fit.points == 20);
  CHECK(evidence.large.fit.points == 20);
  CHECK(close(evidence.small.fit.median, 2, 0.03));
  CHECK(evidence.large.constant.points == 0);
}

TEST_CASE("a family that is alone cannot be left out") {
  TwoFamilies two;
  for (MeasuredPoint& point : two.points) point.family = "all";
  const Judgement judgement = two.judged();
  CHECK_FALSE(judgement.points.front().unseen);
  CHECK(evidence_of(judgement).all.fit.points == 0);
  CHECK(evidence_of(judgement).families == 1);
}

TEST_CASE("quantiles lie between neighbours in proportion") {
  std::vector<double> ratios;
  for (int i = 0; i <= 10; ++i) ratios.push_back(i % 2 == 0 ? 1 + 0.01 * i : 1 - 0.01 * i);
  const cost::Errors errors = errors_of(ratios);  // 0, 1, ... 10 %
  CHECK(errors.points == 11);
  CHECK(close(errors.median, 0.05, 1e-9));
  CHECK(close(errors.p90, 0.09, 1e-9));
  CHECK(close(errors.p95, 0.095, 1e-9));
  CHECK(close(errors.worst, 0.10, 1e-9));
}

TEST_CASE("evidence has the measured range, and errors by powers of ten") {
  const cost::Evidence evidence = evidence_of(TwoFamilies().judged());
  CHECK(evidence.size.least == 5e6);
  CHECK(evidence.size.most == 2e7);
  CHECK_FALSE(evidence.smallest);
  REQUIRE(evidence.decades.size() == 2);
  CHECK(evidence.decades.at(6).points == 20);
  CHECK(close(evidence.decades.at(6).median, 2, 0.03));
  CHECK(close(evidence.decades.at(7).median, 2.0 / 3, 0.03));
  CHECK(evidence.size.holds(5e6));
  CHECK_FALSE(evidence.size.holds(4.9e6));
}

}  // namespace
}  // namespace stratagem::calibrate

// Levenberg-Marquardt with Huber weights; folds by hash.
#include "calibrate/fit/least_squares.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "base/median.hpp"

namespace stratagem::calibrate {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

double to_scale(Range range, double value) {
  return range == Range::positive ? std::log(value) : std::log(value / (1 - value));
}

double from_scale(Range range, double scaled) {
  return range == Range::positive ? std::exp(scaled) : 1 / (1 + std::exp(-scaled));
}

/// Squared up to `corner`, linear beyond.
struct Huber {
  double corner;
  [[nodiscard]] double loss(double residual) const {
    const double size = std::abs(residual);
    return size <= corner ? size * size / 2 : corner * (size - corner / 2);
  }
  [[nodiscard]] double weight(double residual) const {
    return std::min(1.0, corner / std::max(std::abs(residual), 1e-300));
  }
  [[nodiscard]] double loss(const Vector& residuals) const {
    return residuals.unaryExpr([this](double residual) { return loss(residual); }).sum();
  }
  [[nodiscard]] Vector weights(const Vector& residuals) const {
    return residuals.unaryExpr([this](double residual) { return weight(residual); });
  }
};

/// The observations to fit to, then one residual per parameter that keeps it near its start.
class Problem {
 public:
  Problem(const std::vector<Parameter>& parameters, std::vector<std::size_t> observations,
          const LogRatio& log_ratio, double noise)
      : parameters_(parameters),
        observations_(std::move(observations)),
        log_ratio_(log_ratio),
        noise_(noise),
        huber_{1.345 * noise} {}

  [[nodiscard]] Vector start() const {
    Vector scaled(size());
    for (Eigen::Index i = 0; i < size(); ++i) scaled[i] = start_of(i);
    return scaled;
  }

  [[nodiscard]] Vector scaled(const std::vector<double>& values) const {
    Vector scaled(size());
    for (Eigen::Index i = 0; i < size(); ++i)
      scaled[i] = to_scale(parameter(i).range, values[static_cast<std::size_t>(i)]);
    return scaled;
  }

  [[nodiscard]] std::vector<double> values(const Vector& scaled) const {
    std::vector<double> values;
    for (Eigen::Index i = 0; i < size(); ++i)
      values.push_back(from_scale(parameter(i).range, scaled[i]));
    return values;
  }

  [[nodiscard]] Vector residuals(const Vector& scaled) const {
    const std::vector<double> at = values(scaled);
    const auto count = static_cast<Eigen::Index>(observations_.size());
    Vector residuals(count + size());
    for (Eigen::Index i = 0; i < count; ++i) {
      residuals[i] = log_ratio_(observations_[static_cast<std::size_t>(i)], at);
    }
    for (Eigen::Index i = 0; i < size(); ++i) {
      residuals[count + i] = noise_ * (scaled[i] - start_of(i)) / parameter(i).spread;
    }
    return residuals;
  }

  /// Moves `scaled` downhill until steps stop paying.
  [[nodiscard]] Vector minimise(Vector scaled) const {
    constexpr int most_steps = 60;
    constexpr double longest_step = 1;
    constexpr double least_gain = 1e-9;
    double damping = 1e-2;
    Vector residual = residuals(scaled);
    double loss = huber_.loss(residual);
    for (int step = 0; step < most_steps; ++step) {
      const Matrix jacobian = jacobian_of_residuals(scaled);
      const Matrix weighted = huber_.weights(residual).asDiagonal() * jacobian;
      const Matrix normal = jacobian.transpose() * weighted;
      const Vector gradient = weighted.transpose() * residual;
      bool improved = false;
      double gain = 0;
      for (int attempt = 0; attempt < 10 && !improved; ++attempt) {
        Matrix damped = normal;
        damped.diagonal() *= 1 + damping;
        Vector move = -damped.ldlt().solve(gradient);
        move = move.cwiseMax(-longest_step).cwiseMin(longest_step);
        const Vector candidate = scaled + move;
        const Vector candidate_residual = residuals(candidate);
        const double candidate_loss = huber_.loss(candidate_residual);
        improved = candidate_loss < loss;
        if (improved) {
          gain = loss - candidate_loss;
          scaled = candidate;
          residual = candidate_residual;
          loss = candidate_loss;
          damping = std::max(damping / 5, 1e-9);
        } else {
          damping *= 5;
        }
      }
      if (!improved || gain < least_gain * loss) break;
    }
    return scaled;
  }

 private:
  [[nodiscard]] Matrix jacobian_of_residuals(const Vector& scaled) const {
    constexpr double difference = 1e-4;
    Matrix jacobian(static_cast<Eigen::Index>(observations_.size()) + size(), size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      Vector ahead = scaled;
      Vector behind = scaled;
      ahead[i] += difference;
      behind[i] -= difference;
      jacobian.col(i) = (residuals(ahead) - residuals(behind)) / (2 * difference);
    }
    return jacobian;
  }
  [[nodiscard]] Eigen::Index size() const { return static_cast<Eigen::Index>(parameters_.size()); }
  [[nodiscard]] const Parameter& parameter(Eigen::Index i) const {
    return parameters_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] double start_of(Eigen::Index i) const {
    return to_scale(parameter(i).range, parameter(i).start);
  }

  const std::vector<Parameter>& parameters_;
  std::vector<std::size_t> observations_;
  const LogRatio& log_ratio_;
  double noise_;
  Huber huber_;
};

/// splitmix64's finaliser: neighbours in a table get unrelated numbers.
std::uint64_t hash(std::uint64_t group) {
  group += 0x9e3779b97f4a7c15U;
  group = (group ^ (group >> 30U)) * 0xbf58476d1ce4e5b9U;
  group = (group ^ (group >> 27U)) * 0x94d049bb133111ebU;
  return group ^ (group >> 31U);
}

/// The fold of each observation: groups are dealt out like cards.
std::vector<int> folds_of(const std::vector<std::uint64_t>& groups) {
  std::map<std::uint64_t, int> fold_of_hash;
  for (const std::uint64_t group : groups) fold_of_hash[hash(group)] = 0;
  int next = 0;
  for (auto& [group, fold] : fold_of_hash) fold = next++ % folds;
  std::vector<int> result;
  result.reserve(groups.size());
  for (const std::uint64_t group : groups) result.push_back(fold_of_hash.at(hash(group)));
  return result;
}

double median_relative_error(std::vector<double> log_ratios) {
  for (double& ratio : log_ratios) ratio = std::abs(std::expm1(ratio));
  return median(std::move(log_ratios));
}

/// The standard deviation of log ratios if they are normal but for outliers.
double noise_of(std::vector<double> log_ratios) {
  for (double& ratio : log_ratios) ratio = std::abs(ratio);
  return std::clamp(1.4826 * median(std::move(log_ratios)), 0.002, 0.1);
}

/// The log ratios of observations, each predicted by a fit to the folds without it; empty where
/// folds are too small.
std::vector<double> unseen_by_folds(const std::vector<Parameter>& parameters,
                                    const std::vector<std::uint64_t>& groups,
                                    const LogRatio& log_ratio, double noise) {
  const std::vector<int> fold_of = folds_of(groups);
  std::vector<double> unseen;
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (fold_of[i] != fold) seen.push_back(i);
    }
    if (seen.size() == groups.size() || seen.size() < parameters.size()) continue;
    const Problem part(parameters, seen, log_ratio, noise);
    const std::vector<double> values = part.values(part.minimise(part.start()));
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (fold_of[i] == fold) unseen.push_back(log_ratio(i, values));
    }
  }
  return unseen;
}

}  // namespace

Estimate fit(const std::vector<Parameter>& parameters, const std::vector<std::uint64_t>& groups,
             const LogRatio& log_ratio) {
  if (groups.size() < parameters.size() || groups.empty()) {
    throw InputError("calibrate", "",
                     "at least as many measured points as constants to fit, " +
                         std::to_string(parameters.size()),
                     std::to_string(groups.size()));
  }
  std::vector<std::size_t> all(groups.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto log_ratios_with = [&](const std::vector<double>& values) {
    std::vector<double> ratios;
    ratios.reserve(all.size());
    for (const std::size_t i : all) ratios.push_back(log_ratio(i, values));
    return ratios;
  };
  const Problem rough(parameters, all, log_ratio, 0.1);
  const Vector near = rough.minimise(rough.start());
  const double noise = noise_of(log_ratios_with(rough.values(near)));
  const Problem whole(parameters, all, log_ratio, noise);

  Estimate estimate;
  estimate.values = whole.values(whole.minimise(near));
  estimate.log_ratios = log_ratios_with(estimate.values);
  estimate.noise = noise;
  estimate.median_error = median_relative_error(estimate.log_ratios);
  const std::vector<double> unseen = unseen_by_folds(parameters, groups, log_ratio, noise);
  estimate.cross_validated_error =
      unseen.empty() ? estimate.median_error : median_relative_error(unseen);
  return estimate;
}

std::vector<std::optional<double>> leave_families_out(const std::vector<Parameter>& parameters,
                                                      const Estimate& whole,
                                                      const std::vector<std::string>& families,
                                                      const LogRatio& log_ratio) {
  std::vector<std::optional<double>> unseen(families.size());
  for (const std::string& family : std::set<std::string>(families.begin(), families.end())) {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < families.size(); ++i) {
      if (families[i] != family) others.push_back(i);
    }
    if (others.size() < parameters.size()) continue;
    const Problem part(parameters, others, log_ratio, whole.noise);
    const std::vector<double> values = part.values(part.minimise(part.scaled(whole.values)));
    for (std::size_t i = 0; i < families.size(); ++i) {
      if (families[i] == family) unseen[i] = log_ratio(i, values);
    }
  }
  return unseen;
}

}  // namespace stratagem::calibrate

// Averages measured collectives of processors by size, and tells the errors of sizes that are left
// out.
#include "calibrate/fit/mpi.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "base/input_error.hpp"
#include "base/median.hpp"
#include "cost/measured_times.hpp"

namespace stratagem::calibrate {
namespace {

using Points = std::vector<MpiPoint>;

/// Four digits, as all constants of profiles have.
double to_four_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3e", value);
  return std::strtod(text.data(), nullptr);
}

cost::CollectiveTimes averaged(const Points& points) {
  std::map<int, std::map<double, std::vector<double>>> logarithms;
  for (const MpiPoint& point : points)
    logarithms[point.ranks][point.size.value].push_back(std::log(point.time.value));
  cost::CollectiveTimes times;
  for (const auto& [ranks, sizes] : logarithms) {
    for (const auto& [size, logs] : sizes) {
      double sum = 0;
      for (const double log : logs) sum += log;
      const double mean = std::exp(sum / static_cast<double>(logs.size()));
      times.by_ranks[ranks].push_back(
          {.payload = Bytes{size}, .time = Seconds{to_four_digits(mean)}});
    }
  }
  return times;
}

/// Errors of the points that `left_out` picks, predicted from the others.
std::vector<double> errors_without(const Points& points,
                                   const std::function<bool(const MpiPoint&)>& left_out) {
  Points others = points;
  std::erase_if(others, left_out);
  const cost::CollectiveTimes times = averaged(others);
  std::vector<double> errors;
  for (const MpiPoint& point : points) {
    const bool covered = std::ranges::any_of(
        others, [&](const MpiPoint& other) { return other.ranks >= point.ranks; });
    if (!left_out(point) || !covered) continue;
    const Seconds predicted = cost::measured_time(times, point.ranks, point.size);
    errors.push_back(std::abs(predicted / point.time - 1));
  }
  return errors;
}

/// Leaves out every family of points in turn.
template <typename Family>
double cross_validated(const Points& points, const std::vector<Family>& families,
                       const std::function<bool(const MpiPoint&, const Family&)>& belongs) {
  std::vector<double> errors;
  for (const Family& family : families) {
    const auto some =
        errors_without(points, [&](const MpiPoint& point) { return belongs(point, family); });
    errors.insert(errors.end(), some.begin(), some.end());
  }
  return errors.empty() ? 0 : median(errors);
}

double sizes_error(const Points& points) {
  std::map<double, int> sizes;
  for (const MpiPoint& point : points) ++sizes[point.size.value];
  std::vector<double> families;
  for (const auto& [size, count] : sizes) families.push_back(size);
  if (families.size() < 2) return 0;
  return cross_validated<double>(points, families, [](const MpiPoint& point, const double& size) {
    return point.size.value == size;
  });
}

/// The least and the most ranks have nobody beyond them to be predicted from.
double ranks_error(const Points& points) {
  std::map<int, int> ranks;
  for (const MpiPoint& point : points) ++ranks[point.ranks];
  std::vector<int> families;
  for (const auto& [number, count] : ranks) families.push_back(number);
  if (families.size() < 3) return 0;
  families = {families.begin() + 1, families.end() - 1};
  return cross_validated<int>(points, families, [](const MpiPoint& point, const int& number) {
    return point.ranks == number;
  });
}

MpiFit fit_kind(const Points& points, const std::string& source) {
  MpiFit fit{.times = averaged(points),
             .points = points.size(),
             .sizes_error = sizes_error(points),
             .ranks_error = ranks_error(points)};
  std::vector<double> errors;
  for (const MpiPoint& point : points)
    errors.push_back(
        std::abs(cost::measured_time(fit.times, point.ranks, point.size) / point.time - 1));
  fit.median_error = median(errors);
  fit.times.provenance = cost::Provenance::measured;
  fit.times.source = std::to_string(points.size()) + " medians, strides averaged, of " + source;
  fit.times.error = to_four_digits(std::max(fit.sizes_error, fit.ranks_error));
  return fit;
}

/// Is every group of `point` one of ranks of one server? Where servers have different numbers of
/// ranks nobody knows who stands where.
bool within_server(const MpiPoint& point, const Measurements& from) {
  if (from.servers == 1) return true;
  if (from.ranks % from.servers != 0) return false;
  const int per_server = from.ranks / from.servers;
  const int reach = point.ranks * point.stride;
  return reach <= per_server && per_server % reach == 0;
}

}  // namespace

std::map<std::string, MpiFit> fit_mpi(const std::vector<Measurements>& measurements) {
  std::map<std::string, Points> points;
  std::map<std::string, std::string> sources;
  for (const Measurements& from : measurements) {
    for (const MpiTable& table : from.mpi) {
      const std::string kind = cost::to_text(table.collective);
      for (const MpiPoint& point : table.points)
        if (within_server(point, from)) points[kind].push_back(point);
      std::string& source = sources[kind];
      source += (source.empty() ? "" : "; ") + from.origin.source + " on " + from.origin.host +
                ", " + std::to_string(from.ranks) + " ranks, " + from.origin.date;
    }
  }
  std::map<std::string, MpiFit> fits;
  for (const auto& [kind, of_kind] : points)
    if (!of_kind.empty()) fits[kind] = fit_kind(of_kind, sources[kind]);
  return fits;
}

}  // namespace stratagem::calibrate

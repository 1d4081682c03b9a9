// Interpolates in payload and ranks.
#include "cost/measured_times.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/input_error.hpp"

namespace stratagem::cost {
namespace {

using Points = std::vector<TimedPayload>;

/// time = fixed + payload * slope, near some payload.
struct Line {
  double fixed = 0;  ///< seconds
  double slope = 0;  ///< seconds per byte

  [[nodiscard]] Line towards(const Line& other, double share) const {
    return {fixed + share * (other.fixed - fixed), slope + share * (other.slope - slope)};
  }
};

Line through(const TimedPayload& left, const TimedPayload& right) {
  const double slope = (right.time - left.time).value / (right.payload - left.payload).value;
  return {.fixed = left.time.value - slope * left.payload.value, .slope = slope};
}

Line line_at(const Points& points, Bytes payload) {
  if (payload <= points.front().payload) return {.fixed = points.front().time.value};
  const auto above = std::ranges::find_if(
      points, [&](const TimedPayload& point) { return point.payload >= payload; });
  if (above != points.end()) return through(*(above - 1), *above);
  const TimedPayload& last = points.back();
  const Line rising = points.size() > 1 ? through(*(points.end() - 2), last) : Line{};
  return rising.slope > 0 ? rising : Line{.slope = last.time.value / last.payload.value};
}

Line line_at(const CollectiveTimes& times, int ranks, Bytes payload) {
  const auto above = times.by_ranks.lower_bound(ranks);
  if (above == times.by_ranks.end())
    throw InputError("", "/profile",
                     "collectives measured on " + std::to_string(ranks) +
                         " ranks of a server (calibrate measure under mpirun)",
                     times.by_ranks.empty()
                         ? "none"
                         : "up to " + std::to_string(times.by_ranks.rbegin()->first));
  const Line right = line_at(above->second, payload);
  if (above == times.by_ranks.begin() || above->first == ranks) return right;
  const auto below = std::prev(above);
  const double share =
      static_cast<double>(ranks - below->first) / static_cast<double>(above->first - below->first);
  return line_at(below->second, payload).towards(right, share);
}

}  // namespace

Seconds measured_time(const CollectiveTimes& times, int ranks, Bytes payload) {
  const Line line = line_at(times, ranks, payload);
  return Seconds{line.fixed + payload.value * line.slope};
}

bool within_measured(const CollectiveTimes& times, int ranks, Bytes payload) {
  const auto above = times.by_ranks.lower_bound(ranks);
  if (above == times.by_ranks.end()) return false;
  const auto holds = [&](const Points& points) {
    return points.front().payload <= payload && payload <= points.back().payload;
  };
  if (above->first == ranks) return holds(above->second);
  return above != times.by_ranks.begin() && holds(above->second) && holds(std::prev(above)->second);
}

Route measured_route(const CollectiveTimes& times, int ranks, Bytes payload) {
  const Line line = line_at(times, ranks, payload);
  const double time = line.fixed + payload.value * line.slope;
  const double fixed = std::clamp(line.fixed, 0.0, time);
  const double rest = time - fixed;
  Route route{.loads = {}, .latency = Seconds{fixed}};
  // What takes no more time with more bytes has gone when its latency has: at a rate beyond any
  // link.
  constexpr double beyond_any = 1e18;
  route.limit =
      BytesPerSecond{rest > payload.value / beyond_any ? payload.value / rest : beyond_any};
  return route;
}

}  // namespace stratagem::cost

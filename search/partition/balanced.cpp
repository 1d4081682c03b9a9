// Divides rows by the largest load of a stage, first of time, then of memory.
#include "search/partition/balanced.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "base/input_error.hpp"
#include "search/partition/all_sums.hpp"
#include "search/partition/searcher.hpp"

namespace stratagem::search {
namespace {

using study::Picoseconds;
constexpr double not_allowed = std::numeric_limits<double>::infinity();

/// Of rows `from` to `to` - 1 as stage `stage`; `not_allowed` where that is not allowed. It does not fall
/// with more rows.
using Load = std::function<double(int stage, int from, int to)>;

/// The row behind each stage, such that the largest load is least.
std::optional<std::vector<int>> least_largest(int stages, int rows, const Load& load) {
  // By number of stages and rows in them: the largest load, and where the last stage begins.
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(rows + 1, not_allowed));
  std::vector<std::vector<int>> first(stages + 1, std::vector<int>(rows + 1, 0));
  best[0][0] = 0;
  for (int stage = 1; stage <= stages; ++stage) {
    for (int to = stage; to <= rows; ++to) {
      double& least = best[stage][to];
      for (int from = to - 1; from >= stage - 1; --from) {
        const double own = load(stage - 1, from, to);
        if (own >= least) break;
        const double both = std::max(own, best[stage - 1][from]);
        if (both < least) {
          least = both;
          first[stage][to] = from;
        }
      }
    }
  }
  if (best[stages][rows] == not_allowed) return std::nullopt;
  std::vector<int> ends(stages);
  for (int stage = stages, to = rows; stage > 0; to = first[stage--][to]) ends[stage - 1] = to;
  return ends;
}

std::optional<Proposal> balanced_proposal(const study::Run& run) {
  if (run.plan || run.options.pipeline < 2 ||
      run.options.pipeline_ranks() != run.options.pipeline) {
    throw InputError(run.origin.file, "/strategy/pipeline",
                     "a strategy with at least 2 stages, without replicas",
                     run.plan ? "a plan file" : std::to_string(run.options.pipeline));
  }
  const Rows rows = rows_of(run);
  const auto ends = balanced_stages(rows);
  if (!ends) return std::nullopt;
  Proposal result;
  std::vector<int> counts;
  Picoseconds slowest = 0;
  int from = 0;
  for (std::size_t stage = 0; stage < ends->size(); ++stage) {
    const int to = (*ends)[stage];
    const Picoseconds time = time_of_stage(rows, from, to);
    slowest = std::max(slowest, time);
    counts.push_back(layers(rows.rows, from, to));
    result.parts.push_back({.what = words(rows.rows, from, to),
                            .time = sim::to_seconds(sim::Ticks{time}),
                            .memory = needs(rows.rows, from, to, rows.in_flight[stage])});
    from = to;
  }
  result.strategy = Json::object().set("layers_per_stage", list_of(counts));
  result.objective = sim::to_seconds(sim::Ticks{slowest});
  return result;
}

/// The ends of the model may be stages without a layer.
std::vector<Json> every_balance(const study::Run& run, std::size_t most) {
  std::vector<int> least(run.options.pipeline, 1);
  least.front() = least.back() = 0;
  std::vector<Json> all;
  const auto layers = static_cast<int>(model::layers(*run.graph).size());
  for (const std::vector<int>& counts : all_sums(layers, least, most))
    all.push_back(Json::object().set("layers_per_stage", list_of(counts)));
  return all;
}

}  // namespace

Picoseconds time_of_stage(const Rows& rows, int from, int to) {
  Picoseconds time = 0;
  for (int row = from; row < to; ++row) time += rows.rows[row].time;
  return time;
}

std::optional<std::vector<int>> balanced_stages(const Rows& rows) {
  const auto stages = static_cast<int>(rows.in_flight.size());
  const auto count = static_cast<int>(rows.rows.size());
  const auto memory = [&](int stage, int from, int to) {
    const Bytes bytes = needs(rows.rows, from, to, rows.in_flight[stage]);
    return bytes > rows.room ? not_allowed : bytes.value;
  };
  const auto time = [&](int stage, int from, int to) {
    return memory(stage, from, to) == not_allowed
               ? not_allowed
               : static_cast<double>(time_of_stage(rows, from, to));
  };
  const auto fastest = least_largest(stages, count, time);
  if (!fastest) return std::nullopt;
  double slowest = 0;
  for (int stage = 0, from = 0; stage < stages; from = (*fastest)[stage++])
    slowest = std::max(slowest, time(stage, from, (*fastest)[stage]));
  return least_largest(stages, count, [&](int stage, int from, int to) {
    return time(stage, from, to) > slowest ? not_allowed : memory(stage, from, to);
  });
}

Searcher balanced() {
  return {"balanced",
          "layers_per_stage",
          "stage",
          "the passes of a micro-batch on the slowest stage; then the memory of the fullest device",
          &balanced_proposal,
          &every_balance};
}

}  // namespace stratagem::search

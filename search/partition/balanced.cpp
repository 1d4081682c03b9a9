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

constexpr double not_allowed = std::numeric_limits<double>::infinity();

/// Of rows `from` to `to` - 1 as stage `stage`; `not_allowed` where that is not allowed. It does
/// not fall with more rows.
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

void refuse_unbalanced(const study::Run& run) {
  const auto refuse_if = [&](bool is_so, const std::string& key, const std::string& expected,
                             const std::string& found) {
    if (is_so) throw InputError("", key, expected, found);
  };
  refuse_if(run.plan.has_value(), "/plan", "a strategy with stages of layers", "a plan file");
  refuse_if(!run.options.stages.replicas.empty(), "/strategy/replicas_per_stage",
            "one of each stage (--by pipedream finds replicas)",
            std::to_string(run.options.pipeline_ranks()) + " for " +
                std::to_string(run.options.pipeline) + " stages");
  refuse_if(run.options.pipeline < 2, "/strategy/pipeline", "at least 2 stages",
            std::to_string(run.options.pipeline));
}

std::optional<Proposal> balanced_proposal(const study::Run& run) {
  refuse_unbalanced(run);
  const Rows rows = rows_of(run);
  if (!rows.flush) {
    throw InputError("", "/strategy/schedule", "a schedule with a flush (or --by pipedream)",
                     run.options.schedule);
  }
  const auto ends = balanced_stages(rows);
  if (!ends) return std::nullopt;
  const auto all = joined(rows.rows);
  Proposal result;
  std::vector<int> counts;
  int from = 0;
  for (std::size_t stage = 0; stage < ends->size(); ++stage) {
    const int to = (*ends)[stage];
    const Row& own = all[from][to];
    const Seconds time = sim::to_seconds(sim::Ticks{own.time});
    counts.push_back(own.layers);
    result.objective = std::max(result.objective, time);
    result.parts.push_back({.what = words(rows.rows, from, to),
                            .time = time,
                            .memory = needs(own, rows.in_flight[stage], rows.versions[stage])});
    from = to;
  }
  result.strategy = Json::object().set("layers_per_stage", list_of(counts));
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

std::optional<std::vector<int>> balanced_stages(const Rows& rows) {
  const auto stages = static_cast<int>(rows.in_flight.size());
  const auto count = static_cast<int>(rows.rows.size());
  const auto all = joined(rows.rows);
  const auto memory = [&](int stage, int from, int to) {
    const Bytes bytes = needs(all[from][to], rows.in_flight[stage], rows.versions[stage]);
    if (bytes > rows.room) return not_allowed;
    return bytes.value;
  };
  const auto time = [&](int stage, int from, int to) {
    if (memory(stage, from, to) == not_allowed) return not_allowed;
    return static_cast<double>(all[from][to].time);
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

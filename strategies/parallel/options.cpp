// What follows from options alone: the ends of the pipeline, and its ranks.
#include "strategies/parallel/options.hpp"

#include <numeric>
#include <string>
#include <vector>

#include "strategies/schedules/all.hpp"

namespace stratagem::strategies {

int Options::chunks_of(const Schedule& of) const {
  if (of.chunks > 0) return of.chunks;
  return stages.chunks > 0 ? stages.chunks : pipeline > 1 ? 2 : 1;
}

namespace {

std::optional<std::vector<int>> ranks_of(const std::optional<int>& end, int ranks) {
  if (!end) return std::nullopt;
  if (*end != StageOptions::all_ranks) return std::vector<int>{*end};
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

Ends Options::ends(const Schedule& of) const {
  const auto ranks = [&](const std::optional<int>& end) {
    return ranks_of(of.spreads_ends ? StageOptions::all_ranks : end, pipeline);
  };
  return {.embedding = ranks(stages.embedding), .head = ranks(stages.head)};
}

int Options::pipeline_ranks() const {
  if (stages.replicas.empty()) return pipeline;
  return std::accumulate(stages.replicas.begin(), stages.replicas.end(), 0);
}

}  // namespace stratagem::strategies

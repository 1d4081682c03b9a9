// Reads the strategy object by the declarations of all strategies, and counts its ranks.
#include "strategies/parallel/options.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {

int Options::chunks_of(const Schedule& of) const {
  return of.chunks > 0 ? of.chunks : stages.chunks > 0 ? stages.chunks : 2;
}

namespace {

std::optional<std::vector<int>> ranks_of(const std::optional<int>& end, int ranks) {
  if (!end) return std::nullopt;
  if (*end != StageOptions::all_ranks) return std::vector<int>{*end};
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Strategies that have ranks, innermost first.
std::vector<const Strategy*> with_ranks() {
  std::vector<const Strategy*> some;
  for (const Strategy& entry : all()) {
    if (!entry.ranks.name.empty()) some.insert(some.begin(), &entry);
  }
  std::stable_partition(some.begin(), some.end(),
                        [](const Strategy* one) { return !one->ranks.outermost; });
  return some;
}

}  // namespace

std::vector<std::string> rank_kinds() {
  std::vector<std::string> kinds;
  for (const Strategy* one : with_ranks()) kinds.push_back(one->ranks.name);
  return kinds;
}

std::string rank_keys() {
  std::string keys;
  for (const Strategy* one : with_ranks()) keys += (keys.empty() ? "" : " x ") + one->key();
  return keys;
}

int Options::size(const std::string& kind) const {
  for (const Strategy& entry : all()) {
    if (entry.ranks.name == kind) return entry.ranks.size(*this);
  }
  expects(false, "some strategy has ranks of the kind");
  return 0;
}

int Options::stride(const std::string& kind) const {
  int devices = 1;
  for (const std::string& one : order_of_ranks()) {
    if (one == kind) break;
    devices *= size(one);
  }
  return devices;
}

int Options::devices() const {
  int devices = 1;
  for (const std::string& kind : rank_kinds()) devices *= size(kind);
  return devices;
}

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

std::string path_at(Options& options, const void* place) {
  std::string path = "/strategy";
  for (const Strategy& entry : all()) {
    for (const Option<Options>& option : entry.options) {
      if (option.at(options) == place) path += "/" + option.key;
    }
  }
  return path;
}

Options read_options(const JsonReader& reader, std::optional<int> gpus) {
  Options options;
  for (const Strategy& entry : all()) options = read_object(entry.options, reader, options);
  if (gpus && !reader.has("data") && *gpus % options.devices() == 0)
    options.data = *gpus / options.devices();
  for (const Strategy& entry : all()) {
    if (entry.complete != nullptr) entry.complete(options, reader);
  }
  reader.finish();
  return options;
}

}  // namespace stratagem::strategies

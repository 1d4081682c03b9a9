// Reads the strategy object by the declarations of all strategies, and counts its ranks.
#include "strategies/parallel/options.hpp"

#include <numeric>
#include <string>
#include <vector>

#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {

int Options::chunks_of(const Schedule& of) const {
  return of.chunks > 0 ? of.chunks : chunks > 0 ? chunks : 2;
}

namespace {

std::optional<std::vector<int>> ranks_of(const std::optional<int>& end, int ranks) {
  if (!end) return std::nullopt;
  if (*end != Options::all_ranks) return std::vector<int>{*end};
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

int Options::size(const std::string& kind) const {
  if (kind == "tp") return tensor;
  if (kind == "cp") return context;
  if (kind == "dap") return dap;
  return kind == "dp" ? data : pipeline_ranks() / ranks_per_device;
}

int Options::stride(const std::string& kind) const {
  int devices = 1;
  for (auto one = rank_order.begin(); *one != kind; ++one) devices *= size(*one);
  return devices;
}

int Options::devices() const {
  int all = 1;
  for (const std::string& kind : rank_order) all *= size(kind);
  return all;
}

Ends Options::ends(const Schedule& of) const {
  const auto ranks = [&](const std::optional<int>& end) {
    return ranks_of(of.spreads_ends ? all_ranks : end, pipeline);
  };
  return {.embedding = ranks(embedding), .head = ranks(head)};
}

int Options::pipeline_ranks() const {
  if (replicas_per_stage.empty()) return pipeline;
  return std::accumulate(replicas_per_stage.begin(), replicas_per_stage.end(), 0);
}

std::string path_of(Options& options, const void* place) {
  std::string path = "/strategy";
  for (const Strategy& entry : all()) {
    for (const Option<Options>& option : entry.options) {
      if (option.at(options) == place) path += "/" + option.key;
    }
  }
  return path;
}

Options read_options(const JsonReader& reader) {
  Options options;
  for (const Strategy& entry : all()) options = read_object(entry.options, reader, options);
  for (const Strategy& entry : all()) {
    if (entry.complete != nullptr) entry.complete(options, reader);
  }
  reader.finish();
  return options;
}

}  // namespace stratagem::strategies

// Groups ranks by server, searches each kind of server once and takes the least of all.
#include "cost/nccl/communicator.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "base/memo.hpp"

namespace stratagem::cost::nccl {
namespace {

/// Narrows `common` to what `found` has too.
void narrow(Graph& common, const Graph& found) {
  common.channels.resize(std::min(common.channels.size(), found.channels.size()));
  common.intra = std::min(common.intra, found.intra);
  common.inter = std::min(common.inter, found.inter);
  common.type_intra = std::max(common.type_intra, found.type_intra);
  common.type_inter = std::max(common.type_inter, found.type_inter);
  common.same_order = common.same_order && found.same_order;
  common.pattern = std::max(common.pattern, found.pattern);
}

void narrow(Graphs& common, const Graphs& found) {
  narrow(common.ring, found.ring);
  narrow(common.tree, found.tree);
  narrow(common.nvls, found.nvls);
}

/// What the search depends on.
struct Sought {
  Server server;
  bool proxies = true;
  bool several_nodes = false;
  friend bool operator==(const Sought&, const Sought&) = default;
};

std::shared_ptr<const Searched> search_once(const Sought& sought) {
  static Memo<Sought, Searched> searched(256);  // runs of a scenario ask for the same ones
  return searched.of(sought, [&] {
    const Paths paths = paths_of(sought.server, sought.proxies);
    return Searched{sought.server, paths, find_graphs(sought.server, paths, sought.several_nodes)};
  });
}

}  // namespace

std::shared_ptr<const Searched> Communicators::search(const std::vector<int>& gpus,
                                                      bool several_nodes) {
  auto& known = known_[{gpus, several_nodes}];
  if (known == nullptr)
    known = search_once({server_of(cluster_, gpus), constants_.proxies, several_nodes});
  return known;
}

Communicator Communicators::of(const std::vector<int>& ranks) {
  expects(!ranks.empty(), "a communicator has at least one rank");
  std::vector<int> order;
  std::map<int, std::vector<int>> gpus;
  for (const int rank : ranks) {
    const int node = cluster_.node_of(rank);
    if (!gpus.contains(node)) order.push_back(node);
    gpus[node].push_back(rank % cluster_.gpus_per_node());
  }
  Communicator result{.ranks = static_cast<int>(ranks.size()),
                      .nodes = static_cast<int>(order.size()),
                      .compute_capability = cluster_.design().compute_capability,
                      .processor = cluster_.design().processor,
                      .members = {},
                      .common = {}};
  for (const int node : order) {
    std::ranges::sort(gpus[node]);
    const auto searched = search(gpus[node], order.size() > 1);
    if (result.members.empty()) result.common = searched->graphs;
    narrow(result.common, searched->graphs);
    result.members.push_back({node, searched});
  }
  return result;
}

}  // namespace stratagem::cost::nccl

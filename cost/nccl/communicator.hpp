// The GPUs of a collective on a cluster, with the channels that all their servers have.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cost/nccl/channel_search.hpp"
#include "cost/nccl/constants.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost::nccl {

/// A server and what the search finds on it.
struct Searched {
  Server server;
  Paths paths;
  Graphs graphs;
};

/// The members of a communicator on one server.
struct Members {
  int node = 0;
  std::shared_ptr<const Searched> on;
};

/// What all servers have in common is the least that any has: channels, speeds; the farthest paths.
struct Communicator {
  int ranks = 0;
  int nodes = 0;
  int compute_capability = 0;
  topology::Processor processor = topology::Processor::unknown;
  std::vector<Members> members;  ///< by node, in the order of the ranks
  Graphs common;                 ///< channels without GPUs in them
  [[nodiscard]] int ranks_per_node() const { return ranks / nodes; }
};

/// Makes communicators of one cluster and searches each kind of server once: servers with the same
/// GPUs in the communicator are alike. The cluster and the constants must outlive it.
class Communicators {
 public:
  Communicators(const topology::Cluster& cluster, const Constants& constants)
      : cluster_(cluster), constants_(constants) {}

  /// `ranks` are GPUs of the cluster, at least one.
  Communicator of(const std::vector<int>& ranks);

 private:
  std::shared_ptr<const Searched> search(const std::vector<int>& gpus, bool several_nodes);

  const topology::Cluster& cluster_;
  const Constants& constants_;
  std::map<std::pair<std::vector<int>, bool>, std::shared_ptr<const Searched>> known_;
};

}  // namespace stratagem::cost::nccl

// How much of their ports' bandwidth collectives between servers reach, by what was measured.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "cost/profile.hpp"
#include "cost/ring.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost {

/// Does this link connect an adapter to the network?
bool is_port(const topology::Cluster& cluster, topology::LinkId link);

/// The share of the usable bandwidth of adapters' ports that collectives over some number of ranks
/// reach (0..1], from the collectives that were measured on the cluster (NodeDesign::measured):
///
///     share = payload * load / usable / (measured time - predicted latency)
///
/// where load is what the measured collective puts on the busiest port, and all else is as
/// predicted without measurements. A group of n ranks has the share that was measured over n ranks,
/// wherever its ranks stand (chosen, see docs/internals/network.md). Between two measurements the
/// share is linear in the logarithm of the number of ranks, beyond them that of the nearest one. A
/// share is never above 1: faster measurements say nothing of the ports. A kind that was not
/// measured has the shares of all-reduces, and one share stands for all payloads. Messages from one
/// rank to another have the whole port.
class PortShares {
 public:
  /// The route of a collective of all ranks of a cluster, as predicted without measurements.
  using Predicted = std::function<Route(const topology::Cluster&, CollectiveKind, Bytes payload)>;

  PortShares(const topology::Cluster& cluster, const CollectiveConstants& constants,
             Predicted predicted);
  /// 1 for messages, and where nothing was measured.
  double at(CollectiveKind kind, int ranks);

 private:
  double of(CollectiveKind kind, const topology::MeasuredCollective& measured);
  [[nodiscard]] double computed(CollectiveKind kind,
                                const topology::MeasuredCollective& measured) const;

  topology::Cluster cluster_;
  CollectiveConstants constants_;
  Predicted predicted_;
  std::map<std::pair<CollectiveKind, int>, double> found_;  ///< by number of servers measured
};

}  // namespace stratagem::cost

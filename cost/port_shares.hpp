// How much of their ports' bandwidth collectives between servers reach, by what was measured.
#pragma once

#include <map>
#include <string>

#include "cost/profile.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost {

/// Does this link connect an adapter to the network?
bool is_port(const topology::Cluster& cluster, topology::LinkId link);

/// The share of the usable bandwidth of adapters' ports that collectives over some number of
/// servers reach (0..1], from the all-reduces that were measured on the cluster
/// (NodeDesign::reductions):
///
///     share = payload * load / usable / (measured time - predicted latency)
///
/// where load is what the all-reduce puts on the busiest port, and all else is as predicted without
/// measurements. Between two measurements the bus bandwidth is linear in the logarithm of the
/// number of servers, and the payload that of fewer servers; beyond them both are those of the
/// nearest one. A share is never above 1: faster measurements say nothing of the ports. One share
/// stands for all kinds of collectives and all payloads; messages from one rank to another have the
/// whole port.
class PortShares {
 public:
  PortShares(const topology::Cluster& cluster, const CollectiveConstants& constants,
             std::string nccl);
  /// 1 within a server, and where nothing was measured.
  double at(int servers);

 private:
  [[nodiscard]] double of(const topology::MeasuredReduction& measured) const;

  topology::Cluster cluster_;
  CollectiveConstants constants_;
  std::string nccl_;
  std::map<int, double> found_;  ///< by number of servers
};

}  // namespace stratagem::cost

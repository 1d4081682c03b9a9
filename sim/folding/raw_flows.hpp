// Every flow that a program puts on a cluster, before what is alike is folded.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/quantity.hpp"
#include "cost/collectives.hpp"
#include "program/program.hpp"
#include "sim/instant.hpp"

namespace stratagem::sim {

/// One route of one kind of collective of one communicator.
struct RawFlow {
  int communicator = 0;
  int group = 0;
  cost::CollectiveKind kind = cost::CollectiveKind::all_reduce;
  int payloads = 0;  ///< in RawFlows::payloads
  Ticks latency;
  BytesPerSecond weight;  ///< the rate that it reaches alone
  std::size_t first_load = 0;
  std::size_t end_of_loads = 0;
};

/// The flows, those of a communicator in a row, and the links that they use, with numbers of their
/// own: each direction of a link is one.
struct RawFlows {
  /// Of one flow on one link.
  struct Load {
    int link = 0;
    int amount = 0;  ///< in `amounts`
  };
  std::vector<RawFlow> flows;
  std::vector<int> first_flow;  ///< by communicator, and the end
  std::vector<Load> loads;
  std::vector<double> amounts;               ///< distinct: bytes per byte of payload
  std::vector<std::vector<Bytes>> payloads;  ///< distinct
  std::vector<BytesPerSecond> capacities;    ///< by link

  [[nodiscard]] std::span<const Load> loads_of(const RawFlow& flow) const {
    return std::span(loads).subspan(flow.first_load, flow.end_of_loads - flow.first_load);
  }
};

/// Rank r of the program is GPU r of the cluster. Throws InputError for a latency that a
/// simulation cannot count.
RawFlows raw_flows(const program::Program& program, cost::Collectives& collectives);

}  // namespace stratagem::sim

// Ring collectives over a cluster: how many bytes each link carries, and how long one takes with no
// other traffic.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "cost/collective_kind.hpp"
#include "cost/link_loads.hpp"
#include "cost/profile.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost {

/// What a collective over `ranks` GPUs puts on the network, and its fixed time.
/// The payload is the whole tensor: what all-reduce reduces, all-gather ends with, reduce-scatter
/// starts from, all-to-all holds per rank, send sends, and each rank of a ring exchange sends.
struct Route {
  std::vector<LinkLoad> loads;  ///< ascending directions
  Seconds latency;
  /// At most so many bytes of payload flow in a second, however free the links are.
  BytesPerSecond limit{std::numeric_limits<double>::infinity()};
};

/// Bytes along every edge of a ring of n ranks per byte of payload, see ring_route.
double ring_factor(CollectiveKind kind, double n);

/// Latency of the slowest path that a message takes from one rank to the next, within and between
/// nodes; 0 where no message takes such a path.
struct Hops {
  Seconds near;  ///< within a node
  Seconds far;   ///< between nodes
};

/// The number of steps that a collective takes in sequence.
struct Steps {
  int near = 0;
  int far = 0;
};

/// The steps over a ring of n `ranks` on N `nodes`: 2(n-1) for an all-reduce, of which 2(N-1) are
/// between nodes; one for an all-to-all, a send or a ring exchange; half of an all-reduce's for the
/// others, since a broadcast also passes every rank.
Steps ring_steps(CollectiveKind kind, int ranks, int nodes);

/// The latency that a hop adds to a step: its links' latency minus what the step's constant
/// contains. Never less than 0, since no constant says how much time faster links would save.
constexpr Seconds excess(Seconds links, Seconds contained) {
  return links > contained ? links - contained : Seconds{};
}
inline Seconds excess(Seconds links, const std::optional<Constant<Seconds>>& contained) {
  return excess(links, contained ? contained->value : Seconds{});
}

/// What a collective puts on links, and the hops of its messages.
struct Carried {
  std::vector<LinkLoad> loads;  ///< ascending directions
  Hops hops;
};

/// Loads and hops of a collective among ranks, for ring_route.
Carried ring_loads(CollectiveKind kind, const topology::Cluster& cluster,
                   const std::vector<int>& ranks);

/// Rings in the order of `ranks`, node by node. With n ranks on N nodes, k on a node:
///   bytes along every edge of the ring, per byte of payload
///     all-reduce 2(n-1)/n; all-gather and reduce-scatter (n-1)/n; broadcast,
///     reduce and ring exchange 1
///   within a node
///     each GPU sends to its successor; where GPUs are cabled to each other, along the cables
///     (mesh_rings.hpp); ranks on processors send through memory. With N > 1 an edge carries
///     (k-1)/k of the above, because in each of the k rotations of the ring one edge leaves the
///     node instead
///   between nodes
///     the edge is spread evenly over the adapters nearest to the group's GPUs, as NCCL spreads its
///     channels; each adapter is reached from the group's GPU nearest to it
///   all-to-all: 1/n of the payload from each rank to each other over the shortest paths
///   send: the payload from rank 0 to rank 1
///   to_host, from_host: the payload over PCIe, to or from the nearest processor
///   to_drives, from_drives: an equal part of the payload to or from each drive of the server, by
///     way of that processor
///   latency = base + steps within nodes * node_step + steps between nodes * network_step
///     with the steps of ring_steps. A step within nodes is longer by the excess of the slowest
///     such hop over node_link_latency, a step between nodes by that over network_link_latency. The
///     one step of an all-to-all is that of its slowest pair of ranks. Copies to and from the host
///     take host_copy's latency and the excess of their links; copies to and from drives take the
///     latency of their links
/// Closed-form channels: no trees, no choice of protocol by size, no in-switch reduction.
/// Source for the factors: nccl-tests, doc/PERFORMANCE.md; for the channels:
/// docs/reference/hardware.md.
Route ring_route(CollectiveKind kind, const topology::Cluster& cluster,
                 const std::vector<int>& ranks, const CollectiveConstants& constants);

/// The usable bandwidth of one direction of a link: the datasheet's times the profile's usable
/// share. Links between sockets take the share of PCIe; drives are usable fully.
BytesPerSecond usable_bandwidth(const topology::Link& link, const CollectiveConstants& constants,
                                bool forward = true);

}  // namespace stratagem::cost

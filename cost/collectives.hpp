// Routes and times of collectives on a cluster: rings in closed form, NCCL's own channels and
// choices, or what was measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost/all_to_all.hpp"
#include "cost/nccl/communicator.hpp"
#include "cost/nccl/tuning.hpp"
#include "cost/port_shares.hpp"
#include "cost/profile.hpp"
#include "cost/ring.hpp"
#include "topology/cluster.hpp"
#include "topology/footprint.hpp"

namespace stratagem::cost {

/// A route and the payloads that take it, ascending; none: whatever the payload.
struct Routed {
  Route route;
  std::vector<Bytes> payloads;
};

/// A profile for NCCL's own, uncorrected prediction within a server: it has only the rate that
/// NCCL's search counts on for NVLinks.
CollectiveConstants as_searched(const topology::NodeDesign& design);

/// Remembers what it has found, for all ranks that stand alike (topology/footprint.hpp): ask one
/// object for all collectives of a program.
class Collectives {
 public:
  /// Rings in closed form, ring.hpp.
  Collectives(const topology::Cluster& cluster, const CollectiveConstants& constants);
  /// As NCCL `version` does them (nccl::is_version), but for channels on a switch, which are those
  /// of 2.28 (nccl/filling.hpp); an empty version is closed form. Throws InputError
  /// where ranks are processors and NCCL is asked for, or the profile has no memory_efficiency.
  Collectives(const topology::Cluster& cluster, const CollectiveConstants& constants,
              const std::string& version);
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  ~Collectives() = default;

  /// Returns one route for each way in which the collective may be carried. In closed form there is
  /// one route for all payloads. NCCL's model takes for each payload the algorithm and protocol
  /// with the least predicted time: loads of that algorithm's channels, latency and limit from the
  /// corrected prediction (nccl/correction.hpp). NCCL does not predict sends and all-to-alls, and
  /// has no ring exchange: they take a ring's base time and one step of the protocol Simple,
  /// uncorrected, and only links limit them. Where a profile has measured times of ranks on
  /// processors, a group within a server takes those (measured_times.hpp), with a route of its own
  /// for each payload, and a ring exchange those of a send. In all three cases a step is longer by
  /// the latency that its links add (ring.hpp).
  std::vector<Routed> routes(CollectiveKind kind, const std::vector<int>& ranks,
                             const std::vector<Bytes>& payloads);
  Route route(CollectiveKind kind, const std::vector<int>& ranks, Bytes payload);
  /// An all-to-all of unequal parts, with the latency of an equal one, and the payload that its
  /// loads are per byte of. No plan has one; it serves measurements and questions about a cluster.
  std::pair<Route, Bytes> all_to_all(const std::vector<int>& ranks, const Parts& parts);
  /// The time of a collective that has the links to itself: latency + max(payload / limit, max over
  /// links of payload * load / usable).
  [[nodiscard]] Seconds alone(const Route& route, Bytes payload) const;

  /// The usable bandwidth of one direction of a link, as in ring.hpp. With NCCL's model an NVLink's
  /// is multiplied by the profile's bandwidth_factor, if it has one.
  [[nodiscard]] BytesPerSecond usable(const topology::Link& link, bool forward = true) const;

  [[nodiscard]] const topology::Cluster& cluster() const { return cluster_; }
  [[nodiscard]] const CollectiveConstants& constants() const { return constants_; }

 private:
  /// What is known of ranks that stand alike, found for the first of them that were asked for.
  struct Alike {
    std::vector<int> ranks;
    topology::Footprint footprint;
    std::optional<nccl::Communicator> communicator;
    std::map<std::pair<CollectiveKind, nccl::Algorithm>, Carried> carried;
    /// A route whose links are placed in the footprint, in the order of its loads.
    struct Placed {
      Routed routed;
      std::vector<topology::PlacedLink> links;
    };
    std::map<std::pair<CollectiveKind, std::vector<Bytes>>, std::vector<Placed>> routes;
  };

  void check_processors(const std::string& version) const;
  /// For the ranks of `alike` themselves.
  std::vector<Routed> find_routes(CollectiveKind kind, const std::vector<Bytes>& payloads,
                                  Alike& alike);
  std::vector<Routed> nccl_routes(CollectiveKind kind, const std::vector<Bytes>& payloads,
                                  Alike& alike);
  /// Raises the load on adapters' ports by what measured collectives lose there.
  void crowd_ports(CollectiveKind kind, const std::vector<int>& ranks, Route& route);
  [[nodiscard]] Routed moved(const Alike::Placed& route, const topology::Footprint& to) const;
  /// nullptr where a formula holds. Throws InputError for a kind that was not measured where others
  /// were.
  [[nodiscard]] const CollectiveTimes* times_of(CollectiveKind kind,
                                                const std::vector<int>& ranks) const;
  [[nodiscard]] nccl::Estimate estimate(CollectiveKind kind, const nccl::Communicator& communicator,
                                        Bytes payload) const;
  const Carried& carried_by(CollectiveKind kind, nccl::Algorithm algorithm, Alike& alike) const;
  /// The latency that a group's links add to its measured times.
  [[nodiscard]] Seconds beyond_measured(CollectiveKind kind, const std::vector<int>& ranks) const;
  [[nodiscard]] double nvlink_factor() const;

  topology::Cluster cluster_;
  CollectiveConstants constants_;
  const nccl::Constants* nccl_ = nullptr;  ///< none: closed form
  std::optional<nccl::Communicators> communicators_;
  PortShares port_shares_;
  std::map<std::vector<int>, Alike> alike_;  ///< by shape
};

}  // namespace stratagem::cost

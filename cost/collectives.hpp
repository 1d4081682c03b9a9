// The price of collectives on a cluster: rings in closed form, or NCCL's own channels and choices.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cost/all_to_all.hpp"
#include "cost/nccl/communicator.hpp"
#include "cost/nccl/tuning.hpp"
#include "cost/profile.hpp"
#include "cost/ring.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost {

/// A route and the payloads that take it, ascending; none: whatever the payload.
struct Routed {
  Route route;
  std::vector<Bytes> payloads;
};

/// For NCCL's own, uncorrected prediction within a server: NVLinks carry what its search counts on.
/// Nothing else is known.
CollectiveConstants as_searched(const topology::NodeDesign& design);

/// Remembers what it has searched: ask one object for all collectives of a program.
class Collectives {
 public:
  /// Rings in closed form, ring.hpp.
  Collectives(const topology::Cluster& cluster, const CollectiveConstants& constants);
  /// As NCCL `version` does them (nccl::is_version), but for channels on a switch, which are those of
  /// 2.28 (nccl/filling.hpp); an empty version is closed form. Throws InputError
  /// where ranks are processors and NCCL is asked for, or the profile has no memory_efficiency.
  Collectives(const topology::Cluster& cluster, const CollectiveConstants& constants,
              const std::string& version);
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  ~Collectives() = default;

  /// One route for each way that the collective is done in. Where a profile has measured times of
  /// ranks on processors, a group within a server takes those, each payload its own way
  /// (measured_times.hpp). Closed form has one way for all payloads;
  /// NCCL's is the one of the least predicted time for a payload, its loads those of the
  /// algorithm's channels, its latency and limit the corrected prediction
  /// (nccl/correction.hpp). Sends and all-to-alls, which NCCL does not predict, take a ring's base
  /// time and one step of the protocol Simple, uncorrected, and are limited by links alone. In all
  /// three ways links of more latency than the steps contain, or the times of ranks on processors
  /// (node_link_latency), make a collective longer by the excess of each step (ring.hpp).
  std::vector<Routed> routes(CollectiveKind kind, const std::vector<int>& ranks,
                             const std::vector<Bytes>& payloads);
  Route route(CollectiveKind kind, const std::vector<int>& ranks, Bytes payload);
  /// An all-to-all of unequal parts, with the latency of an equal one, and the payload that its loads
  /// are per byte of. No plan has one: for what is measured, and for those who ask about a cluster.
  std::pair<Route, Bytes> all_to_all(const std::vector<int>& ranks, const Parts& parts);
  /// What a collective takes on links that nothing else uses: latency + max(payload / limit, max over
  /// links of payload * load / usable).
  [[nodiscard]] Seconds alone(const Route& route, Bytes payload) const;

  /// What one direction of a link carries at most: as in ring.hpp, with NCCL's model an NVLink times
  /// the profile's bandwidth_factor, where it has one.
  [[nodiscard]] BytesPerSecond usable(const topology::Link& link, bool forward = true) const;

  [[nodiscard]] const topology::Cluster& cluster() const { return cluster_; }
  [[nodiscard]] const CollectiveConstants& constants() const { return constants_; }

 private:
  void check_processors(const std::string& version) const;
  /// nullptr where a formula holds. Throws InputError for a kind that was not measured where others
  /// were.
  [[nodiscard]] const CollectiveTimes* times_of(CollectiveKind kind,
                                                const std::vector<int>& ranks) const;
  [[nodiscard]] nccl::Estimate way(CollectiveKind kind, const nccl::Communicator& communicator,
                                   Bytes payload) const;
  const Carried& carried_by(CollectiveKind kind, nccl::Algorithm algorithm,
                            const std::vector<int>& ranks, const nccl::Communicator& communicator);
  /// What a group's links add to its measured times.
  [[nodiscard]] Seconds beyond_measured(CollectiveKind kind, const std::vector<int>& ranks) const;
  [[nodiscard]] double nvlink_factor() const;

  topology::Cluster cluster_;
  CollectiveConstants constants_;
  const nccl::Constants* nccl_ = nullptr;  ///< none: closed form
  std::optional<nccl::Communicators> communicators_;
  std::map<std::tuple<CollectiveKind, nccl::Algorithm, std::vector<int>>, Carried> carried_;
};

}  // namespace stratagem::cost

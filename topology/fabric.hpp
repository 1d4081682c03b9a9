// The network between servers: one switch that never blocks, or a fat tree of leaves, spines,
// cores.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "topology/network_speed.hpp"

namespace stratagem::topology {

enum class FabricKind : std::uint8_t {
  single_switch,  ///< as many ports as it takes, none blocks another
  fat_tree  ///< leaf switches under spines, and pods of them under cores where that is too few
};

/// What has to be said about a fabric, whatever the number of servers.
struct FabricDesign {
  FabricKind kind = FabricKind::single_switch;
  NetworkSpeed speed;
  /// Of a fat tree. 0: a server's adapters are cabled to one leaf, as far as its ports go. r > 0:
  /// rail-optimised, adapter i of each server of a unit is cabled to leaf i mod r of the unit.
  int rails = 0;
  double oversubscription = 1;       ///< a leaf's capacity down over its capacity up
  double core_oversubscription = 1;  ///< likewise of the spines of a pod, where there are cores
  /// Adapters on one leaf; 0: as many as its ports allow beside the uplinks that they want.
  int ports_per_leaf = 0;
  friend bool operator==(const FabricDesign&, const FabricDesign&) = default;
};

/// A fat tree in the fluid limit: traffic spreads evenly over all shortest paths (ECMP over many
/// flows), so that all uplinks of a leaf are loaded alike, and so are the switches of a stage. They
/// therefore stand as one: every leaf has one thick link up, to its pod's spines as one vertex, and
/// each pod one to the cores (the tree of Leiserson, IEEE Trans. Computers C-34(10), 1985). That is
/// exact for even spreading; what hashing adds in collisions is not in it. A route costs a few
/// links however many switches there are.
/// Which adapter is cabled where is arithmetic: nothing is kept per pair.
class Fabric {
 public:
  /// A stage of the tree: leaves, the spines of one pod, cores.
  struct Stage {
    int groups = 0;     ///< leaves; pods; 1 for cores; 0 where the tree has no such stage
    int switches = 0;   ///< of each group: 1 for a leaf
    int cables = 0;     ///< up from each group; 0 on top
    BytesPerSecond up;  ///< of all these cables, one direction
  };
  /// A switch group towards what is above it: indices of `names()`.
  struct Uplink {
    int below = 0;
    int above = 0;
    int cables = 1;
    BytesPerSecond bandwidth;
  };

  /// Of `nodes` servers with `nics` adapters each. Throws InputError for figures that no switch has
  /// or that such switches cannot connect.
  Fabric(FabricDesign design, int nodes, int nics);

  [[nodiscard]] const FabricDesign& design() const { return design_; }
  [[nodiscard]] const Stage& leaves() const { return leaves_; }
  [[nodiscard]] const Stage& spines() const { return spines_; }
  [[nodiscard]] const Stage& cores() const { return cores_; }
  [[nodiscard]] int ports_per_leaf() const { return ports_per_leaf_; }
  /// Vertices: leaves first, then the spines of each pod, then the cores.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Links: those of the leaves in their order, then those of the pods.
  [[nodiscard]] std::vector<Uplink> uplinks() const;
  /// The leaf of an adapter.
  [[nodiscard]] int leaf_of(int node, int nic) const;
  [[nodiscard]] int pod_of(int leaf) const { return leaf / leaves_per_pod_; }

  /// What flows up an uplink (index of `uplinks()`), or down where negative.
  struct Flow {
    int uplink = 0;
    double amount = 0;
  };
  /// How messages cross the tree that enter it at the leaves with positive amounts and leave it at
  /// those with negative ones (leaf, amount; sum 0): what can stay on a leaf or in a pod does.
  [[nodiscard]] std::vector<Flow> crossing(
      const std::vector<std::pair<int, double>>& entering) const;
  /// For such a crossing: the number of switches after the first on the longest path, each with the
  /// cable to it.
  [[nodiscard]] Seconds latency(const std::vector<Flow>& crossing) const;

 private:
  void build_leaves(int nodes, int nics);
  void build_spines();
  void build_cores();

  FabricDesign design_;
  int nics_ = 0;
  int ports_per_leaf_ = 0;
  int nodes_per_unit_ = 0;  ///< with rails
  int leaves_per_pod_ = 1;
  Stage leaves_;
  Stage spines_;
  Stage cores_;
};

}  // namespace stratagem::topology

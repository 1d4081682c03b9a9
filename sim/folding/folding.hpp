// Which devices are simulated: all of them, or one of each class of devices that must behave alike.
#pragma once

#include <vector>

#include "cost/collectives.hpp"
#include "cost/profile.hpp"
#include "cost/ring.hpp"
#include "program/program.hpp"
#include "sim/instant.hpp"
#include "sim/network.hpp"
#include "topology/cluster.hpp"

namespace stratagem::sim {

/// What is simulated: a device, standing for `multiplicity` devices that do the same at the same
/// instants.
struct Actor {
  int device = 0;  ///< the first of them
  int multiplicity = 1;
  int sequence = 0;
  /// By group: index into Folding::communicator_classes, -1 if it has none.
  std::vector<int> communicator_classes;
};

/// A communicator, standing for `multiplicity` communicators that do the same.
struct CommunicatorClass {
  std::vector<int> actors;  ///< distinct members
  int multiplicity = 1;
};

/// The flows of one kind of collective of one communicator class, for the payloads that take the
/// same route.
struct Flow {
  cost::CollectiveKind kind = cost::CollectiveKind::all_reduce;
  std::vector<Bytes> payloads;  ///< ascending; none: whatever the payload
  int communicator_class = 0;
  FlowClass flow_class = 0;
  Ticks latency;
  /// uses[u] of link `link` gains `count` flows while this one is active.
  struct Part {
    int link = 0;
    int use = 0;
    std::int64_t count = 0;
  };
  std::vector<Part> parts;
};

/// What is simulated of a cluster: everything the engine needs to know about devices and links.
/// Links that no flow uses are left out. Of links that the same flows load in the same way only the
/// slowest is kept: it is full before the others.
struct Folding {
  std::vector<Actor> actors;
  std::vector<int> actor_of;  ///< by device
  std::vector<CommunicatorClass> communicator_classes;
  std::vector<Flow> flows;
  std::vector<BytesPerSecond> capacities;  ///< by link
  /// By link: classes that use it, `count` when all are active.
  std::vector<std::vector<LinkUse>> link_uses;
  std::vector<BytesPerSecond> weights;  ///< by flow class: the rate it reaches alone
  double compute_slowdown = 0;  ///< share of their speed that kernels lose beside communication
  /// Actors do one thing at a time, in the order of the program. This is for processors, whose
  /// threads also copy what they communicate. Only sends and receives proceed meanwhile.
  bool serial = false;
  int launch_queue = 1000;  ///< kernels that a stream takes before launches wait (sim/host.hpp)
  Ticks pass = {};          ///< what the host takes for a pass besides launches
};

/// Maps rank r of the program to GPU r of the cluster, and finds the classes.
///
/// Classes come from colour refinement. A device starts with its sequence as colour; a flow with
/// its kind, group, latency, payloads and the rate that it reaches alone; a link with its capacity.
/// In each round every colour takes in the colours of its neighbours:
///     a device: its communicators
///     a flow: its members, and its links with their loads
///     a link: its flows
/// This ends when no class divides any more. The result is an equitable partition: every link of a
/// class carries equally many flows of every class. With `folded`, each class has one actor,
/// communicator, flow and link. Otherwise all of them are there, and only the classes of flows are
/// used. Nothing depends on how the plan was made. Serial where the cluster's ranks are processors.
Folding fold(const program::Program& program, cost::Collectives& collectives, bool folded);

/// With rings in closed form.
Folding fold(const program::Program& program, const topology::Cluster& cluster,
             const cost::CollectiveConstants& constants, bool folded);

}  // namespace stratagem::sim

// The formulas of tuning.hpp, one algorithm after another.
#include "cost/nccl/tuning.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/input_error.hpp"

namespace stratagem::cost::nccl {
namespace {

constexpr std::array protocols{Protocol::ll, Protocol::ll128, Protocol::simple};

std::size_t index(Protocol protocol) { return static_cast<std::size_t>(protocol); }
std::size_t index(Algorithm algorithm) { return static_cast<std::size_t>(algorithm); }

bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

/// log2 of the nodes, rounded down.
int depth_of(int nodes) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(nodes))) - 1;
}

/// One after the other.
Steps steps_of(CollectiveKind kind, Algorithm algorithm, const Communicator& communicator) {
  const int depth = depth_of(communicator.nodes);
  switch (algorithm) {
    case Algorithm::tree:
      return {.near = 2 * (communicator.ranks_per_node() - 1), .far = 2 * depth};
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return {.near = 1, .far = 2 * depth};
    case Algorithm::pat:
      return {.far = depth};
    case Algorithm::ring:
    case Algorithm::direct:
      return ring_steps(kind, communicator.ranks, communicator.nodes);
  }
  throw BrokenPromise("every algorithm has its steps");
}

/// Predicts in microseconds and GB/s, as the constants are.
class Predictor {
 public:
  Predictor(CollectiveKind kind, const Communicator& communicator, const Constants& constants)
      : kind_(kind),
        communicator_(communicator),
        constants_(constants),
        ranks_(communicator.ranks),
        nodes_(communicator.nodes),
        generation_(communicator.compute_capability >= 100  ? 3
                    : communicator.compute_capability >= 90 ? 2
                    : communicator.compute_capability >= 80 ? 1
                                                            : 0),
        several_(nodes_ == 1   ? 0
                 : nodes_ == 2 ? 1
                               : 2) {}

  std::vector<Estimate> all() {
    const bool all_reduce = kind_ == CollectiveKind::all_reduce;
    for (const Protocol protocol : protocols) {
      if (all_reduce) add_tree(protocol);
    }
    for (const Protocol protocol : protocols) add_ring(protocol);
    if (nodes_ == 1 && (all_reduce || (gathers(kind_) && ranks_ <= 32))) add_nvls(Algorithm::nvls);
    if (nodes_ > 1 && all_reduce) add_nvls(Algorithm::nvls_tree);
    if (gathers(kind_)) add_pat();
    return std::move(estimates_);
  }

 private:
  void add(Algorithm algorithm, Protocol protocol, double latency, double bandwidth) {
    if (bandwidth > 0)
      estimates_.push_back({algorithm, protocol, latency * 1_us, bandwidth * 1_GBps});
  }

  [[nodiscard]] double speed(const Graph& graph) const {
    return (nodes_ <= 2 ? graph.intra : graph.inter) / 1_GBps;
  }

  [[nodiscard]] static double of(const ByAlgorithm& table, Algorithm algorithm, Protocol protocol) {
    return table[index(algorithm)][index(protocol)];
  }

  /// A step within a node.
  [[nodiscard]] double near_step(Algorithm algorithm, Protocol protocol, const Graph& graph) const {
    const bool nvlink = graph.type_intra == PathType::nvlink;
    const double step = of(constants_.within(nvlink).time, algorithm, protocol);
    return protocol == Protocol::ll && nodes_ > 1 ? step * constants_.ll_among_nodes : step;
  }

  /// A step between nodes.
  [[nodiscard]] double far_step(Algorithm algorithm, Protocol protocol) const {
    const bool lone = communicator_.ranks_per_node() == 1 && algorithm == Algorithm::ring;
    return of(constants_.network.time, lone ? Algorithm::tree : algorithm, protocol);
  }

  /// Without the network it is the GPU that limits LL, else the processor.
  [[nodiscard]] double ll_limit() const {
    const bool amd = communicator_.processor == topology::Processor::amd;
    const std::size_t row = nodes_ == 1 ? generation_ : (amd ? 1 : 0);
    return constants_.ll_total[row][several_];
  }

  [[nodiscard]] bool has_ll128(const Graph& graph) const {
    const PathType farthest =
        communicator_.compute_capability >= 90 ? PathType::proxy : PathType::pcie_switches;
    return communicator_.compute_capability >= 70 && graph.type_intra <= PathType::nvlink_relay &&
           (nodes_ == 1 || graph.type_inter <= farthest);
  }

  // ---- rings

  [[nodiscard]] double ring_steps() const {
    if (kind_ == CollectiveKind::all_reduce) return 2 * (ranks_ - 1);
    return gathers(kind_) ? ranks_ - 1 : ranks_;
  }

  void add_ring(Protocol protocol) {
    const Graph& graph = communicator_.common.ring;
    if (protocol == Protocol::ll128 && !has_ll128(graph)) return;
    double bus = graph.count() * speed(graph);
    if (constants_.ampere_total > 0 && communicator_.compute_capability == 80)
      bus = std::min(bus, constants_.ampere_total);
    const bool reduces = kind_ != CollectiveKind::all_gather && kind_ != CollectiveKind::broadcast;
    if (protocol == Protocol::ll) {
      const double share =
          nodes_ == 1 && !reduces ? constants_.share.gather_ll : constants_.share.ring_ll;
      bus = std::min(ll_limit(), share * bus);
    } else if (protocol == Protocol::ll128) {
      bus = std::min(0.92 * bus,
                     graph.count() * constants_.channel.ring_ll128[generation_][several_]);
    }
    add(Algorithm::ring, protocol, ring_latency(protocol, graph), bus * ranks_ / ring_steps());
  }

  [[nodiscard]] double ring_latency(Protocol protocol, const Graph& graph) const {
    const double base = of(constants_.base, Algorithm::ring, protocol);
    double near = near_step(Algorithm::ring, protocol, graph);
    const double far = far_step(Algorithm::ring, protocol);
    if (kind_ != CollectiveKind::all_reduce && !gathers(kind_))
      return base + chain_steps(protocol, graph, nodes_ > 1 ? far : near);
    if (nodes_ > 1 && constants_.processor_overhead) {
      const bool amd = communicator_.processor == topology::Processor::amd;
      near = std::max(near, (amd ? 2.0 : 1.0) * (protocol == Protocol::simple ? 3 : 1));
    }
    const Steps steps = steps_of(kind_, Algorithm::ring, communicator_);
    return base + steps.near * near + steps.far * far;
  }

  /// Channels of one order pass a broadcast on as one; others wait for each other at every rank,
  /// with Simple as long as a tree does.
  [[nodiscard]] double chain_steps(Protocol protocol, const Graph& graph, double step) const {
    if (graph.same_order) return step;
    if (protocol != Protocol::simple) return ring_steps() * step;
    return ring_steps() * (nodes_ > 1 ? far_step(Algorithm::tree, protocol)
                                      : near_step(Algorithm::tree, protocol, graph));
  }

  // ---- trees

  void add_tree(Protocol protocol) {
    const Graph& graph = communicator_.common.tree;
    if (graph.count() == 0 || (protocol == Protocol::ll128 && !has_ll128(graph))) return;
    double bus = std::min(0.92 * graph.count() * speed(graph),
                          graph.count() * constants_.channel.tree[generation_][several_]);
    if (protocol == Protocol::ll) {
      bus = std::min(bus / 3.8, ll_limit());
    } else if (protocol == Protocol::ll128) {
      bus = std::min(bus * (nodes_ == 1 ? 7.0 / 9 : 120.0 / 128),
                     graph.count() * constants_.channel.tree_ll128[generation_][several_]);
    }
    if (graph.pattern == Pattern::tree) bus *= 0.85;
    const Steps steps = steps_of(kind_, Algorithm::tree, communicator_);
    add(Algorithm::tree, protocol,
        of(constants_.base, Algorithm::tree, protocol) +
            steps.near * near_step(Algorithm::tree, protocol, graph) +
            steps.far * far_step(Algorithm::tree, protocol),
        bus / 2);
  }

  // ---- reduction in the switch

  void add_nvls(Algorithm algorithm) {
    const Graph& graph = communicator_.common.nvls;
    const double channels = graph.count();
    if (channels < 2) return;
    const double per_node = communicator_.ranks_per_node();
    const bool all_reduce = kind_ == CollectiveKind::all_reduce;
    const double intra = graph.intra / 1_GBps * constants_.share.nvls[generation_] *
                         (channels - 1) / channels * (all_reduce ? 2 : (per_node - 1) / per_node);
    double each = std::min(intra, graph.inter / 1_GBps);
    double latency = of(constants_.base, algorithm, Protocol::simple) +
                     of(constants_.nvlink.time, algorithm, Protocol::simple);
    if (algorithm == Algorithm::nvls_tree) {
      const double inter = graph.inter / 1_GBps * (nodes_ <= 2 ? 2 : 1);
      each = std::min({intra, inter, constants_.channel.nvls_tree[generation_][several_]});
      latency +=
          steps_of(kind_, algorithm, communicator_).far * far_step(algorithm, Protocol::simple);
    }
    const double factor = all_reduce ? ranks_ / ring_steps() : 1;
    add(algorithm, Protocol::simple, latency, channels * each * factor);
  }

  void add_pat() {
    if (constants_.share.pat <= 0 || nodes_ == 1 || communicator_.ranks_per_node() > 1) return;
    const Graph& graph = communicator_.common.tree;
    const double latency = of(constants_.base, Algorithm::pat, Protocol::simple) +
                           depth_of(nodes_) * far_step(Algorithm::pat, Protocol::simple) / 3.5 +
                           2.8 * ranks_;
    add(Algorithm::pat, Protocol::simple, latency,
        constants_.share.pat * graph.count() * speed(graph));
  }

  CollectiveKind kind_;
  const Communicator& communicator_;
  const Constants& constants_;
  int ranks_;
  int nodes_;
  std::size_t generation_;
  std::size_t several_;  ///< 0, 1, 2 for one node, two, more
  std::vector<Estimate> estimates_;
};

/// By protocol and by floor(log2(bytes / 64)), from 0 on. Published: tuning.cc of 2.28.9, read;
/// that older versions have the same table is assumed.
constexpr std::array<std::array<double, 23>, 3> tree_shares{
    {{1,   1,   1,   1,   0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
      0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1,   1,   1,   1},
     {1,   1,   1,   1,   1,   0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
      0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1,   1},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
      0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9}}};

/// A ring's, with the protocol Simple.
Seconds simple(const ByAlgorithm& table) {
  return table[index(Algorithm::ring)][index(Protocol::simple)] * 1_us;
}

double tree_share(Protocol protocol, Bytes payload) {
  const double power = std::floor(std::log2(std::max(payload / 64_B, 1.0)));
  return tree_shares[index(protocol)][static_cast<std::size_t>(std::min(power, 22.0))];
}

}  // namespace

std::vector<Estimate> estimates(CollectiveKind kind, const Communicator& communicator,
                                const Constants& constants) {
  expects(!takes_one_step(kind), "NCCL predicts no collective of one step");
  if (communicator.ranks < 2) return {};
  return Predictor(kind, communicator, constants).all();
}

Estimate direct_estimate(const Communicator& communicator, const Constants& constants) {
  const bool nvlink = communicator.common.ring.type_intra == PathType::nvlink;
  const LinkSteps& step = communicator.nodes > 1 ? constants.network : constants.within(nvlink);
  return {.algorithm = Algorithm::direct,
          .protocol = Protocol::simple,
          .latency = simple(constants.base) + simple(step.time),
          .bandwidth = BytesPerSecond{std::numeric_limits<double>::infinity()}};
}

Seconds beyond_steps(CollectiveKind kind, Algorithm algorithm, const Communicator& communicator,
                     const Constants& constants, const Hops& hops) {
  const bool in_switch = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
  const Graph& graph =
      algorithm == Algorithm::tree ? communicator.common.tree : communicator.common.ring;
  const bool nvlink = in_switch || graph.type_intra == PathType::nvlink;
  const LinkSteps& step = constants.within(nvlink);
  const Seconds near = excess(hops.near, step.contained);
  const Seconds far = excess(hops.far, constants.network.contained);
  if (kind == CollectiveKind::all_to_all && communicator.nodes > 1) {
    const Seconds within = simple(step.time) + near;
    return std::max(far, within - simple(constants.network.time));
  }
  const Steps steps = steps_of(kind, algorithm, communicator);
  return steps.near * near + steps.far * far;
}

Estimate at_payload(const Estimate& estimate, CollectiveKind kind, Bytes payload,
                    const Communicator& communicator) {
  Estimate now = estimate;
  if (kind != CollectiveKind::all_reduce) return now;
  if (now.algorithm == Algorithm::tree)
    now.bandwidth = now.bandwidth * tree_share(now.protocol, payload);
  const bool simple_ring = now.algorithm == Algorithm::ring && now.protocol == Protocol::simple &&
                           communicator.nodes > 1;
  const int channels = communicator.common.ring.count();
  if (simple_ring && payload >= 64_B * (channels * communicator.ranks))
    now.latency = now.latency * (communicator.compute_capability < 80 ? 1.9 : 1.4);
  return now;
}

Estimate choose(const std::vector<Estimate>& estimates, CollectiveKind kind, Bytes payload,
                const Communicator& communicator) {
  expects(!estimates.empty(), "there is a way to do a collective");
  Estimate best;
  Seconds least;
  for (const Estimate& estimate : estimates) {
    const Estimate now = at_payload(estimate, kind, payload, communicator);
    const Seconds time = now.latency + payload / now.bandwidth;
    if (best.bandwidth > BytesPerSecond{} && time >= least) continue;
    best = now;
    least = time;
  }
  return best;
}

}  // namespace stratagem::cost::nccl

// Walks the channels of every server and the trees between servers.
#include "cost/nccl/route.hpp"

#include <algorithm>
#include <bit>

#include "base/input_error.hpp"
#include "cost/link_loads.hpp"

namespace stratagem::cost::nccl {
namespace {

using topology::Cluster;
using topology::VertexKind;

/// Of the nodes [first, last) the one whose number is divisible by the greatest power of two: trees
/// over such roots have odd nodes as their leaves.
int root_of(int first, int last) {
  if (first == 0) return 0;
  for (int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(last)));; power /= 2) {
    const int multiple = (first + power - 1) / power * power;
    if (multiple < last) return multiple;
  }
}

/// Adds what one communicator puts on the links.
class Loading {
 public:
  Loading(const Cluster& cluster, const Communicator& communicator)
      : cluster_(cluster), communicator_(communicator) {}

  void add_rings(double per_edge) {
    const int count = communicator_.common.ring.count();
    for (int node = 0; node < communicator_.nodes; ++node) {
      const Members& members = communicator_.members[node];
      const Members& next = shifted(node, 1);
      for (int c = 0; c < count; ++c) {
        const Channel& channel = members.on->graphs.ring.channels[c];
        add_chain(members, channel, per_edge / count);
        if (communicator_.nodes > 1) {
          add_hop(members, channel.gpus.back(), channel.nic_out, next,
                  next.on->graphs.ring.channels[c], per_edge / count);
        } else if (channel.gpus.size() > 1) {
          add_near(members, channel.gpus.back(), channel.gpus.front(), per_edge / count);
        }
      }
    }
  }

  void add_trees() {
    const int count = communicator_.common.tree.count();
    for (const Members& members : communicator_.members) {
      for (int c = 0; c < count; ++c) {
        const std::vector<int>& gpus = members.on->graphs.tree.channels[c].gpus;
        for (std::size_t i = 1; i < gpus.size(); ++i) {
          add_near(members, gpus[i], gpus[i - 1], 1.0 / count);
          add_near(members, gpus[i - 1], gpus[i], 1.0 / count);
        }
      }
    }
    add_trees_between(&Graphs::tree, count);
  }

  void add_in_switch(CollectiveKind kind) {
    for (const Members& members : communicator_.members) {
      const auto gpus = static_cast<double>(members.on->server.gpus.size());
      const bool gathers = kind == CollectiveKind::all_gather;
      const bool scatters = kind == CollectiveKind::reduce_scatter;
      const double up = gathers ? 1 / gpus : scatters ? 1 : 1 + 1 / gpus;
      const double down = gathers ? 1 : scatters ? 1 / gpus : 1 + 1 / gpus;
      for (const int gpu : members.on->server.gpus) add_to_switches(members.node, gpu, up, down);
      for (std::size_t i = 1; i < members.on->server.gpus.size(); ++i) {
        const auto place = static_cast<int>(i);
        slow(hops_.near, cluster_.latency(gpu(members, place - 1), gpu(members, place)));
      }
    }
    if (communicator_.nodes > 1)
      add_trees_between(&Graphs::nvls, communicator_.common.nvls.count());
  }

  [[nodiscard]] Carried result() const { return {.loads = loads_.list(), .hops = hops_}; }

 private:
  [[nodiscard]] int gpu(const Members& members, int place) const {
    return members.node * cluster_.gpus_per_node() + members.on->server.gpus[place];
  }

  static void slow(Seconds& slowest, Seconds hop) { slowest = std::max(slowest, hop); }

  /// From one GPU of a server to another, perhaps over a third. Returns the latency of that way.
  Seconds add_edge(const Members& members, int from, int to, double amount) {
    Seconds to_relay;
    const int relay = members.on->paths.between[from][to].relay;
    if (relay >= 0) {
      to_relay = add_edge(members, from, relay, amount);
      from = relay;
    }
    loads_.add(cluster_.route(gpu(members, from), gpu(members, to)), amount);
    return to_relay + cluster_.latency(gpu(members, from), gpu(members, to));
  }

  /// A hop within a server.
  void add_near(const Members& members, int from, int to, double amount) {
    slow(hops_.near, add_edge(members, from, to, amount));
  }

  /// A hop to the first GPU of another server's channel: perhaps over a third GPU to the adapter,
  /// over leaves and spines, and straight from the other adapter.
  void add_hop(const Members& from, int leaving, int nic_out, const Members& to,
               const Channel& arriving, double amount) {
    Seconds to_proxy;
    const int proxy = from.on->paths.out[leaving][nic_out].relay;
    if (proxy >= 0) {
      to_proxy = add_edge(from, leaving, proxy, amount);
      leaving = proxy;
    }
    const int sender = gpu(from, leaving);
    const int receiver = gpu(to, arriving.gpus.front());
    loads_.add(cluster_.route_between(sender, nic_out, receiver, arriving.nic_in), amount);
    slow(hops_.far,
         to_proxy + cluster_.latency_between(sender, nic_out, receiver, arriving.nic_in));
  }

  void add_chain(const Members& members, const Channel& channel, double amount) {
    const std::vector<int>& gpus = channel.gpus;
    for (std::size_t i = 1; i < gpus.size(); ++i) add_near(members, gpus[i - 1], gpus[i], amount);
  }

  /// Two trees over the nodes, each for half of what a channel carries.
  void add_trees_between(Graph Graphs::*graph, int count) {
    if (communicator_.nodes < 2) return;
    for (int shift = 0; shift < 2; ++shift)
      add_tree_between(graph, count, shift, 0, communicator_.nodes);
  }

  /// A binary tree over the nodes [first, last) of one order. Returns its root.
  int add_tree_between(Graph Graphs::*graph, int count, int shift, int first, int last) {
    const int root = root_of(first, last);
    for (const auto& [from, to] : {std::pair{first, root}, std::pair{root + 1, last}}) {
      if (from == to) continue;
      const int child = add_tree_between(graph, count, shift, from, to);
      for (int c = 0; c < count; ++c) {
        const Members& below = shifted(child, shift);
        const Members& above = shifted(root, shift);
        const Channel& lower = (below.on->graphs.*graph).channels[c];
        const Channel& upper = (above.on->graphs.*graph).channels[c];
        add_hop(below, lower.gpus.front(), lower.nic_out, above, upper, 0.5 / count);
        add_hop(above, upper.gpus.front(), upper.nic_out, below, lower, 0.5 / count);
      }
    }
    return root;
  }

  [[nodiscard]] const Members& shifted(int node, int shift) const {
    return communicator_.members[(node + shift) % communicator_.nodes];
  }

  /// Over all links between a GPU and switches, in proportion to their bandwidth.
  void add_to_switches(int node, int local_gpu, double up, double down) {
    const topology::NodeDesign& design = cluster_.design();
    const auto size = static_cast<topology::LinkId>(design.links.size());
    BytesPerSecond total;
    for (const bool counted : {false, true}) {
      for (topology::LinkId l = 0; l < size; ++l) {
        const topology::Link& link = design.links[l];
        const bool forward = is_gpu(link.a, local_gpu) && is_switch(link.b);
        if (!forward && !(is_switch(link.a) && is_gpu(link.b, local_gpu))) continue;
        if (!counted) {
          total += link.bandwidth;
          continue;
        }
        const topology::LinkId id = node * size + l;
        loads_.add({.link = id, .forward = forward}, up * (link.bandwidth / total));
        loads_.add({.link = id, .forward = !forward}, down * (link.bandwidth / total));
      }
    }
  }

  [[nodiscard]] bool is_gpu(topology::VertexId vertex, int index) const {
    const topology::Vertex& found = cluster_.design().vertices[vertex];
    return found.kind == VertexKind::gpu && found.index == index;
  }
  [[nodiscard]] bool is_switch(topology::VertexId vertex) const {
    return cluster_.design().vertices[vertex].kind == VertexKind::nv_switch;
  }

  const Cluster& cluster_;
  const Communicator& communicator_;
  LinkLoads loads_;
  Hops hops_;
};

}  // namespace

Carried channel_loads(CollectiveKind kind, Algorithm algorithm, const Cluster& cluster,
                      const std::vector<int>& ranks, const Communicator& communicator) {
  Loading loading(cluster, communicator);
  switch (algorithm) {
    case Algorithm::ring:
    case Algorithm::pat:
      loading.add_rings(ring_factor(kind, communicator.ranks));
      return loading.result();
    case Algorithm::tree:
      loading.add_trees();
      return loading.result();
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      loading.add_in_switch(kind);
      return loading.result();
    case Algorithm::direct:
      return ring_loads(kind, cluster, ranks);
  }
  throw BrokenPromise("every algorithm has its loads");
}

}  // namespace stratagem::cost::nccl

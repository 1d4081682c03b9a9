// The schedule of attempts around the filling of a server with channels.
#include "cost/nccl/channel_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace stratagem::cost::nccl {
namespace {

using topology::LinkKind;

/// Speeds in GB/s that NCCL tries, descending. Published: search.cc of NVIDIA/nccl 2.28.9, read;
/// that Blackwell's list between nodes begins with 96 is from memory and agrees with its solved
/// graphs.
std::vector<double> speeds(int compute_capability, bool several_nodes) {
  if (compute_capability >= 100 && !several_nodes)
    return {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
  if (compute_capability >= 100)
    return {96, 48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
  if (compute_capability >= 90 && several_nodes)
    return {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
  if (compute_capability >= 90) return {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
  if (several_nodes)
    return {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12};
  return {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
}

class Search {
 public:
  Search(const Server& server, const Paths& paths, bool several_nodes, Pattern pattern, int least,
         int most)
      : server_(server),
        paths_(paths),
        several_nodes_(several_nodes),
        pattern_(pattern),
        least_(least),
        most_(most),
        intra_types_(types(paths.between)),
        inter_types_(several_nodes ? types(paths.out) : std::vector{PathType::pcie_switch}) {
    for (const double each : speeds(server.compute_capability, several_nodes))
      speeds_.push_back(each * 1_GBps);
  }

  Graph run() {
    const BytesPerSecond widest = widest_path();
    const BytesPerSecond total = reachable();
    for (const BytesPerSecond each : speeds_) {
      const bool last = each == speeds_.back();
      if (!last && (each > widest || std::max(least_, 1) * each > total)) continue;
      if (best_.count() > 0 && each / best_.inter <= .49) break;
      if (at_speed(each, total)) break;
    }
    if (best_.count() == 0 && pattern_ != Pattern::nvls) give_up();
    split();
    quicken();
    return std::move(best_);
  }

 private:
  /// The kinds of paths that there are, nearest first: others need not be tried.
  static std::vector<PathType> types(const std::vector<std::vector<Path>>& table) {
    std::set<PathType> present;
    for (const auto& row : table) {
      for (const Path& path : row) {
        if (path.exists()) present.insert(path.type);
      }
    }
    if (present.empty()) present.insert(PathType::nvlink);
    return {present.begin(), present.end()};
  }

  /// The fastest path between two GPUs, or from a GPU to an adapter.
  [[nodiscard]] BytesPerSecond widest_path() const {
    BytesPerSecond widest;
    for (const auto& row : several_nodes_ ? paths_.out : paths_.between) {
      for (const Path& path : row) widest = std::max(widest, path.bandwidth);
    }
    return widest;
  }

  /// What the channels can carry together at most: all NVLinks, or the PCIe link, of the GPU with
  /// the most; paths that are not closed leave one GPU out.
  [[nodiscard]] BytesPerSecond reachable() const {
    BytesPerSecond most;
    for (const int gpu : server_.gpu_vertices) {
      BytesPerSecond nvlink;
      BytesPerSecond pcie;
      for (const int edge : server_.leaving[gpu]) {
        const bool fast = server_.edges[edge].kind == LinkKind::nvlink;
        (fast ? nvlink : pcie) += server_.edges[edge].capacity;
      }
      most = std::max({most, nvlink, pcie});
    }
    const auto gpus = static_cast<double>(server_.gpus.size());
    return pattern_ == Pattern::ring || gpus < 2 ? most : most * (gpus / (gpus - 1));
  }

  /// Tries every kind of path at one speed; true where nothing better can be had.
  bool at_speed(BytesPerSecond each, BytesPerSecond total) {
    const bool rings_cross = several_nodes_ && pattern_ == Pattern::ring;
    for (const bool across : {false, true}) {
      if (across && !rings_cross) break;
      for (const PathType inter : inter_types_) {
        if (stale(inter, best_.type_inter) && inter > PathType::proxy) break;
        for (const PathType intra : intra_types_) {
          if (stale(intra, best_.type_intra)) break;
          if (attempt(each, intra, inter, across, total)) return true;
        }
      }
    }
    return false;
  }

  /// A solution over nearer paths is not tried again over farther ones.
  [[nodiscard]] bool stale(PathType tried, PathType solved) const {
    return best_.count() > 0 && tried > solved;
  }

  bool attempt(BytesPerSecond each, PathType intra, PathType inter, bool across,
               BytesPerSecond total) {
    if (!promising(each)) return false;
    std::vector<Pattern> patterns = {pattern_};
    if (pattern_ == Pattern::balanced_tree && server_.compute_capability >= 90)
      patterns.push_back(Pattern::tree);
    for (const Pattern pattern : patterns) {
      for (const bool same_order : {true, false}) {
        const Terms terms{.pattern = pattern,
                          .intra = each,
                          .inter = each,
                          .max_intra = intra,
                          .max_inter = inter,
                          .same_order = same_order,
                          .across_nics = across,
                          .several_nodes = several_nodes_,
                          .most = most_};
        consider(terms);
        if (best_.count() * best_.inter >= total) return true;
        if (pattern == Pattern::nvls) break;
      }
    }
    return false;
  }

  /// Could the adapters carry more at this speed than the best solution?
  [[nodiscard]] bool promising(BytesPerSecond each) const {
    if (!several_nodes_) return true;
    double channels = 0;
    for (const Edge& edge : server_.edges) {
      if (edge.from == server_.fabric) channels += std::floor(edge.capacity / each + 1e-6);
    }
    return std::min(channels, static_cast<double>(most_)) * each > best_.count() * best_.intra;
  }

  void consider(const Terms& terms) {
    std::vector<Channel> channels = fill(server_, paths_, terms);
    const auto count = static_cast<double>(channels.size());
    if (count < least_ || count * terms.intra <= best_.count() * best_.intra) return;
    best_ = {.pattern = terms.pattern,
             .channels = std::move(channels),
             .intra = terms.intra,
             .inter = terms.inter,
             .type_intra = terms.max_intra,
             .type_inter = terms.max_inter,
             .same_order = terms.same_order};
    across_ = terms.across_nics;
  }

  /// One slow channel in the order of the GPUs, whatever it leads through.
  void give_up() {
    std::vector<int> order(server_.gpus.size());
    std::iota(order.begin(), order.end(), 0);
    const int nic = several_nodes_ ? 0 : -1;
    best_ = {.pattern = pattern_,
             .channels = {{.gpus = order, .nic_in = nic, .nic_out = nic}},
             .intra = 0.1_GBps,
             .inter = 0.1_GBps,
             .type_intra = PathType::sockets,
             .type_inter = PathType::sockets,
             .same_order = true};
  }

  /// Fast channels become twice as many of half the speed.
  void split() {
    const int count = best_.count();
    if (count == 0 || pattern_ == Pattern::nvls || best_.intra < 25_GBps) return;
    if (server_.compute_capability > 80 && best_.intra < 50_GBps && count > 4) return;
    const int twice = std::min(2 * count, most_);
    for (int c = 0; count + c < twice; ++c) best_.channels.push_back(best_.channels[c]);
    const int parts = (twice + count - 1) / count;
    best_.intra = best_.intra / parts;
    best_.inter = best_.inter / parts;
  }

  /// Raises one of the two speeds of trees and reductions in the switch as far as the links allow.
  void quicken() {
    if (best_.count() == 0 || pattern_ == Pattern::ring) return;
    const bool nvls = pattern_ == Pattern::nvls;
    std::vector<BytesPerSecond> faster = speeds_;
    std::ranges::reverse(faster);
    for (const BytesPerSecond each : faster) {
      BytesPerSecond& raised = nvls ? best_.inter : best_.intra;
      if (each <= raised) continue;
      const BytesPerSecond limit = 2 * (nvls ? best_.intra : best_.inter);
      if (raised >= limit || !carries(nvls ? best_.intra : each, nvls ? each : best_.inter)) return;
      raised = each;
    }
  }

  /// Are as many channels as now possible at the given speeds?
  [[nodiscard]] bool carries(BytesPerSecond intra, BytesPerSecond inter) const {
    for (const bool same_order : {true, false}) {
      const Terms terms{.pattern = best_.pattern,
                        .intra = intra,
                        .inter = inter,
                        .max_intra = best_.type_intra,
                        .max_inter = best_.type_inter,
                        .same_order = same_order,
                        .across_nics = across_,
                        .several_nodes = several_nodes_,
                        .most = best_.count()};
      if (static_cast<int>(fill(server_, paths_, terms).size()) == best_.count()) return true;
    }
    return false;
  }

  const Server& server_;
  const Paths& paths_;
  bool several_nodes_;
  Pattern pattern_;
  int least_;
  int most_;
  std::vector<PathType> intra_types_;
  std::vector<PathType> inter_types_;
  std::vector<BytesPerSecond> speeds_;
  Graph best_;
  bool across_ = false;  ///< may the best solution's rings leave by another adapter?
};

}  // namespace

Graphs find_graphs(const Server& server, const Paths& paths, bool several_nodes) {
  const auto gpus = static_cast<int>(server.gpus.size());
  constexpr int most_channels = 32;
  Graphs graphs;
  graphs.ring = Search(server, paths, several_nodes, Pattern::ring, 1, most_channels).run();
  const int rings = graphs.ring.count();
  const Pattern tree = gpus == 1 ? Pattern::tree : Pattern::balanced_tree;
  graphs.tree = Search(server, paths, several_nodes, tree, rings, rings).run();
  const bool reduces_in_switch = server.compute_capability >= 90 && server.nv_switch() >= 0;
  if (reduces_in_switch && gpus > 1) {
    const int heads = std::min(gpus, most_channels);
    graphs.nvls =
        Search(server, paths, several_nodes, Pattern::nvls, several_nodes ? 1 : heads, heads).run();
  }
  return graphs;
}

}  // namespace stratagem::cost::nccl

// Enumerates cycles, then packs as many as the cables carry.
#include "cost/mesh_rings.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace stratagem::cost {
namespace {

using Cycle = std::vector<int>;

class Mesh {
 public:
  Mesh(const topology::Cluster& cluster, const std::vector<int>& gpus) : gpus_(gpus) {
    // GPUs are the design's first vertices of their kind, in order.
    std::vector<int> vertex_of;
    const auto& vertices = cluster.design().vertices;
    for (std::size_t v = 0; v < vertices.size(); ++v) {
      if (topology::is_rank(vertices[v].kind)) vertex_of.push_back(static_cast<int>(v));
    }
    std::map<int, int> gpu_at;
    for (const int gpu : gpus) gpu_at[vertex_of[gpu % cluster.gpus_per_node()]] = gpu;
    for (const topology::Link& link : cluster.design().links) {
      if (link.kind != topology::LinkKind::nvlink) continue;
      if (!gpu_at.contains(link.a) || !gpu_at.contains(link.b)) continue;
      free_[cable(gpu_at[link.a], gpu_at[link.b])] += link.count;
    }
    capacity_ = free_;
  }

  std::vector<Cycle> best() {
    Cycle begun = {gpus_.front()};
    enumerate(begun);
    pack(0);
    return best_;
  }

 private:
  using Cable = std::pair<int, int>;

  [[nodiscard]] static Cable cable(int a, int b) { return std::minmax(a, b); }

  /// Every undirected cycle once: the second GPU comes before the last in the order of the group.
  void enumerate(Cycle& begun) {
    if (begun.size() == gpus_.size()) {
      const bool closes = free_.contains(cable(begun.back(), begun.front()));
      if (closes && begun[1] <= begun.back()) cycles_.push_back(begun);
      return;
    }
    for (const int gpu : gpus_) {
      const bool visited = std::ranges::find(begun, gpu) != begun.end();
      if (visited || !free_.contains(cable(begun.back(), gpu))) continue;
      begun.push_back(gpu);
      enumerate(begun);
      begun.pop_back();
    }
  }

  /// Takes or gives back one NVLink on every cable of a cycle; false, and nothing taken, if one is
  /// used up.
  bool take(const Cycle& cycle, int links) {
    for (std::size_t i = 0; i < edges(cycle); ++i) free_[edge(cycle, i)] -= links;
    const bool enough =
        std::ranges::all_of(free_, [](const auto& entry) { return entry.second >= 0; });
    if (!enough && links > 0) take(cycle, -links);
    return enough;
  }

  [[nodiscard]] static std::size_t edges(const Cycle& cycle) {
    return cycle.size() == 2 ? 1 : cycle.size();
  }
  [[nodiscard]] static Cable edge(const Cycle& cycle, std::size_t i) {
    return cable(cycle[i], cycle[(i + 1) % cycle.size()]);
  }

  /// Tries cycles from `first` on; the same one may be taken again.
  void pack(std::size_t first) {
    if (chosen_.size() > best_.size()) best_ = chosen_;
    if (best_.size() == most()) return;
    for (std::size_t c = first; c < cycles_.size() && best_.size() < most(); ++c) {
      if (!take(cycles_[c], 1)) continue;
      chosen_.push_back(cycles_[c]);
      pack(c);
      chosen_.pop_back();
      take(cycles_[c], -1);
    }
  }

  /// No more cycles than half of what the GPU with the fewest links has (all of them for two GPUs).
  [[nodiscard]] std::size_t most() const {
    std::map<int, int> links;
    for (const auto& [ends, count] : capacity_) {
      links[ends.first] += count;
      links[ends.second] += count;
    }
    int fewest = links.empty() ? 0 : links.begin()->second;
    for (const auto& [gpu, count] : links) fewest = std::min(fewest, count);
    return static_cast<std::size_t>(gpus_.size() == 2 ? fewest : fewest / 2);
  }

  const std::vector<int>& gpus_;
  std::map<Cable, int> free_;
  std::map<Cable, int> capacity_;
  std::vector<Cycle> cycles_;
  std::vector<Cycle> chosen_;
  std::vector<Cycle> best_;
};

}  // namespace

std::vector<std::vector<int>> mesh_rings(const topology::Cluster& cluster,
                                         const std::vector<int>& gpus) {
  if (gpus.size() < 2 || gpus.size() > 8) return {};
  return Mesh(cluster, gpus).best();
}

}  // namespace stratagem::cost

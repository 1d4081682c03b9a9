// Breadth-first search over PCIe, and the few shapes that a path over NVLink can have.
#include "cost/nccl/paths.hpp"

#include <algorithm>
#include <deque>

namespace stratagem::cost::nccl {
namespace {

using topology::LinkKind;
using topology::VertexKind;

class Finder {
 public:
  Finder(const Server& server, bool proxies) : server_(server), proxies_(proxies) {}

  Paths find() {
    const std::size_t gpus = server_.gpus.size();
    const std::size_t nics = server_.nic_vertices.size();
    paths_ = {.between = std::vector(gpus, std::vector<Path>(gpus)),
              .out = std::vector(gpus, std::vector<Path>(nics)),
              .in = std::vector(nics, std::vector<Path>(gpus))};
    for (std::size_t from = 0; from < gpus; ++from) {
      for (std::size_t to = 0; to < gpus; ++to) {
        if (from != to) paths_.between[from][to] = between(gpu(from), gpu(to));
      }
    }
    for (std::size_t g = 0; g < gpus; ++g) {
      for (std::size_t n = 0; n < nics; ++n) {
        paths_.out[g][n] = over_pcie(gpu(g), server_.nic_vertices[n]);
        paths_.in[n][g] = over_pcie(server_.nic_vertices[n], gpu(g));
      }
    }
    if (proxies_) add_proxies();
    return std::move(paths_);
  }

 private:
  [[nodiscard]] int gpu(std::size_t place) const { return server_.gpu_vertices[place]; }

  /// The NVLink from one vertex to another, -1 for none.
  [[nodiscard]] int nvlink(int from, int to) const {
    for (const int edge : server_.leaving[from]) {
      if (server_.edges[edge].to == to && server_.edges[edge].kind == LinkKind::nvlink) return edge;
    }
    return -1;
  }

  [[nodiscard]] Path made(PathType type, std::vector<int> edges, int relay = -1) const {
    Path path{.type = type, .edges = std::move(edges), .bandwidth = {}, .relay = relay};
    if (path.edges.empty()) return path;
    path.bandwidth = server_.edges[path.edges.front()].capacity;
    for (const int edge : path.edges)
      path.bandwidth = std::min(path.bandwidth, server_.edges[edge].capacity);
    return path;
  }

  [[nodiscard]] Path between(int from, int to) const {
    if (const int edge = nvlink(from, to); edge >= 0) return made(PathType::nvlink, {edge});
    if (const int middle = server_.nv_switch(); middle >= 0) {
      const int up = nvlink(from, middle);
      const int down = nvlink(middle, to);
      if (up >= 0 && down >= 0) return made(PathType::nvlink, {up, down});
    }
    const Path relayed = over_gpu(from, to);
    return relayed.exists() ? relayed : over_pcie(from, to);
  }

  /// The widest path over one other GPU, the first of equals.
  [[nodiscard]] Path over_gpu(int from, int to) const {
    Path widest;
    for (std::size_t place = 0; place < server_.gpus.size(); ++place) {
      const int up = nvlink(from, gpu(place));
      const int down = nvlink(gpu(place), to);
      if (up < 0 || down < 0) continue;
      Path path = made(PathType::nvlink_relay, {up, down}, static_cast<int>(place));
      if (path.bandwidth > widest.bandwidth) widest = std::move(path);
    }
    return widest;
  }

  /// A shortest path without NVLinks that leads through neither GPUs nor adapters.
  [[nodiscard]] Path over_pcie(int from, int to) const {
    std::vector<int> reached_by(server_.vertices.size(), -1);
    std::deque<int> queue{from};
    while (!queue.empty() && reached_by[to] < 0) {
      const int vertex = queue.front();
      queue.pop_front();
      const VertexKind kind = server_.vertices[vertex];
      if (vertex != from && kind != VertexKind::pcie_switch && kind != VertexKind::cpu) continue;
      for (const int edge : server_.leaving[vertex]) {
        const Edge& step = server_.edges[edge];
        if (step.kind == LinkKind::nvlink || step.to == from || reached_by[step.to] >= 0) continue;
        reached_by[step.to] = edge;
        queue.push_back(step.to);
      }
    }
    if (reached_by[to] < 0) return {};
    std::vector<int> edges;
    for (int vertex = to; vertex != from; vertex = server_.edges[edges.back()].from)
      edges.push_back(reached_by[vertex]);
    std::ranges::reverse(edges);
    return made(type_over_pcie(edges), edges);
  }

  [[nodiscard]] PathType type_over_pcie(const std::vector<int>& edges) const {
    int processors = 0;
    int switches = 0;
    for (const int edge : edges) {
      const VertexKind kind = server_.vertices[server_.edges[edge].to];
      processors += kind == VertexKind::cpu ? 1 : 0;
      switches += kind == VertexKind::pcie_switch ? 1 : 0;
    }
    if (processors > 0) return processors > 1 ? PathType::sockets : PathType::host_bridge;
    return switches > 1 ? PathType::pcie_switches : PathType::pcie_switch;
  }

  /// Where the way to an adapter leads through a processor: by NVLink to the first GPU near it.
  void add_proxies() {
    const auto direct = paths_.out;
    for (std::size_t g = 0; g < direct.size(); ++g) {
      for (std::size_t n = 0; n < direct[g].size(); ++n) {
        if (direct[g][n].type < PathType::proxy) continue;
        for (std::size_t near = 0; near < direct.size(); ++near) {
          const Path& hop = paths_.between[g][near];
          const Path& rest = direct[near][n];
          if (near == g || hop.type != PathType::nvlink || rest.type > PathType::pcie_switches ||
              !rest.exists()) {
            continue;
          }
          std::vector<int> edges = hop.edges;
          edges.insert(edges.end(), rest.edges.begin(), rest.edges.end());
          paths_.out[g][n] = made(PathType::proxy, std::move(edges), static_cast<int>(near));
          break;
        }
      }
    }
  }

  const Server& server_;
  bool proxies_;
  Paths paths_;
};

}  // namespace

Paths paths_of(const Server& server, bool proxies) { return Finder(server, proxies).find(); }

}  // namespace stratagem::cost::nccl

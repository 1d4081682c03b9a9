// Takes speeds from links and gives them back; sorts adapters by their paths.
#include "cost/nccl/free_links.hpp"

#include <algorithm>
#include <numeric>

namespace stratagem::cost::nccl {
namespace {

/// Speeds are sums and differences of a few decimals: this much is rounding.
constexpr BytesPerSecond rounding{1e3};

}  // namespace

FreeLinks::FreeLinks(const Server& server, const Paths& paths, const Terms& terms)
    : server_(server), paths_(paths), terms_(terms) {
  for (const Edge& edge : server.edges) free_.push_back(edge.capacity);
  for (const int nic : server.nic_vertices) {
    ports_out_.push_back(edge_between(nic, server.fabric));
    ports_in_.push_back(edge_between(server.fabric, nic));
  }
  for (std::size_t g = 0; terms.several_nodes && g < server.gpus.size(); ++g)
    preferred_.push_back(nearest_first(static_cast<int>(g)));
}

int FreeLinks::edge_between(int from, int to) const {
  const auto& leaving = server_.leaving[from];
  const auto leads_there = [&](int edge) { return server_.edges[edge].to == to; };
  return *std::ranges::find_if(leaving, leads_there);
}

bool FreeLinks::take(const std::vector<int>& edges, BytesPerSecond amount) {
  for (const int edge : edges) free_[edge] -= amount;
  const auto overdrawn = [this](int edge) { return free_[edge] + rounding < BytesPerSecond{}; };
  if (amount <= BytesPerSecond{} || std::ranges::none_of(edges, overdrawn)) return true;
  take(edges, -1 * amount);
  return false;
}

BytesPerSecond FreeLinks::width(const Path& path) const {
  BytesPerSecond narrowest = path.bandwidth;
  for (const int edge : path.edges) narrowest = std::min(narrowest, free_[edge]);
  return narrowest;
}

std::vector<int> FreeLinks::with_port(const Path& path, int nic, bool out) const {
  std::vector<int> edges = path.edges;
  edges.push_back((out ? ports_out_ : ports_in_)[nic]);
  return edges;
}

std::vector<int> FreeLinks::nearest_first(int g) const {
  std::vector<int> order(server_.nic_vertices.size());
  std::iota(order.begin(), order.end(), 0);
  const auto nearer = [&](int a, int b) { return paths_.in[a][g].type < paths_.in[b][g].type; };
  std::ranges::stable_sort(order, nearer);
  const auto others =
      std::ranges::find_if(order, [&](int nic) { return nearer(order.front(), nic); });
  const auto own = server_.gpus[g] % (others - order.begin());
  std::rotate(order.begin(), order.begin() + own, others);
  return order;
}

std::vector<int> FreeLinks::adapters() const {
  std::vector<int> result;
  for (std::size_t choice = 0; choice < server_.nic_vertices.size(); ++choice) {
    for (const std::vector<int>& order : preferred_) {
      if (std::ranges::find(result, order[choice]) == result.end()) result.push_back(order[choice]);
    }
  }
  return result;
}

}  // namespace stratagem::cost::nccl

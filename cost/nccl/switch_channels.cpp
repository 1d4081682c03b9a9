// Channels of reductions in the switch (NVLS).
#include <algorithm>

#include "cost/nccl/free_links.hpp"

namespace stratagem::cost::nccl {
namespace {

bool take_switch(const Server& server, int middle, int head, BytesPerSecond speed,
                 FreeLinks& links) {
  for (std::size_t e = 0; e < server.edges.size(); ++e) {
    const Edge& edge = server.edges[e];
    if (edge.from != middle && edge.to != middle) continue;
    const int vertex = edge.from == middle ? edge.to : edge.from;
    const bool twice = vertex == server.gpu_vertices[head];
    if (!links.take({static_cast<int>(e)}, (twice ? 2 : 1) * speed)) return false;
  }
  return true;
}

/// The adapter that a head talks to; -1: all that are near are taken.
int take_adapter(const Paths& paths, int head, BytesPerSecond speed, FreeLinks& links) {
  for (std::size_t n = 0; n < paths.in.size(); ++n) {
    const auto nic = static_cast<int>(n);
    const Path& in = paths.in[n][head];
    const Path& out = paths.out[head][n];
    if (!links.near(in) || !links.near(out)) continue;
    const std::vector<int> arriving = links.with_port(in, nic, false);
    if (!links.take(arriving, speed)) continue;
    if (links.take(links.with_port(out, nic, true), speed)) return nic;
    links.take(arriving, -1 * speed);
  }
  return -1;
}

}  // namespace

std::vector<Channel> switch_channels(const Server& server, const Paths& paths, const Terms& terms,
                                     FreeLinks& links) {
  std::vector<Channel> channels;
  const int middle = server.nv_switch();
  if (middle < 0) return channels;
  const auto most = std::min(server.gpus.size(), static_cast<std::size_t>(terms.most));
  for (int head = 0; head < static_cast<int>(most); ++head) {
    if (!take_switch(server, middle, head, terms.intra, links)) break;
    const int nic = terms.several_nodes ? take_adapter(paths, head, terms.inter, links) : -1;
    if (terms.several_nodes && nic < 0) break;
    channels.push_back({.gpus = {head}, .nic_in = nic, .nic_out = nic});
  }
  return channels;
}

}  // namespace stratagem::cost::nccl

// Paths between GPUs and adapters of one server, ranked by what they lead through.
#pragma once

#include <cstdint>
#include <vector>

#include "base/quantity.hpp"
#include "cost/nccl/server.hpp"

namespace stratagem::cost::nccl {

/// What a path leads through, nearest first; NCCL prints them as NVL, NVB, PIX, PXB, PXN, PHB, SYS.
enum class PathType : std::uint8_t {
  nvlink,         ///< NVLink, directly or through a switch
  nvlink_relay,   ///< two NVLinks and the GPU between them
  pcie_switch,    ///< one PCIe switch
  pcie_switches,  ///< several PCIe switches
  proxy,          ///< NVLink to a GPU that is near the adapter
  host_bridge,    ///< one processor
  sockets         ///< several processors
};

struct Path {
  PathType type = PathType::sockets;
  std::vector<int> edges;  ///< of the server; empty: there is none
  BytesPerSecond bandwidth;
  int relay = -1;  ///< place of the GPU that it leads through, -1 for none

  [[nodiscard]] bool exists() const { return !edges.empty(); }
};

/// One path for each pair, places being those of Server::gpus and adapters those of the design.
struct Paths {
  std::vector<std::vector<Path>> between;  ///< from GPU to GPU
  std::vector<std::vector<Path>> out;      ///< from GPU to adapter
  std::vector<std::vector<Path>> in;       ///< from adapter to GPU
};

/// GPUs reach each other by NVLink where they can, else over one other GPU of the communicator (the
/// widest), else over PCIe. An adapter is reached over PCIe or, where that leads through a
/// processor and `proxies` are there (since NCCL 2.12), over the NVLink of a GPU near it; what an
/// adapter receives always comes over PCIe.
/// Published: paths.cc of NVIDIA/nccl 2.28.9, read; that proxies begin with 2.12 is from memory.
Paths paths_of(const Server& server, bool proxies);

}  // namespace stratagem::cost::nccl

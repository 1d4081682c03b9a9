// The constants of NCCL's own prediction of its collectives, by version.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::cost::nccl {

/// `direct`: every rank sends to every other without an order; NCCL does not predict it.
enum class Algorithm : std::uint8_t { tree, ring, nvls, nvls_tree, pat, direct };
enum class Protocol : std::uint8_t { ll, ll128, simple };
std::string to_text(Algorithm);
std::string to_text(Protocol);

/// By protocol: LL, LL128, Simple.
using ByProtocol = std::array<double, 3>;
/// By algorithm, those that NCCL predicts: tree, ring, NVLS, NVLSTree, PAT.
using ByAlgorithm = std::array<ByProtocol, 5>;
/// On one node, on two, on more.
using ByNodes = std::array<double, 3>;
/// By generation of GPUs: Volta, Ampere, Hopper, Blackwell.
using ByGeneration = std::array<ByNodes, 4>;

/// Steps over one kind of link.
struct LinkSteps {
  ByAlgorithm time{};
  /// The latency of links that the steps contain, by the latencies in topology/presets. Assumed,
  /// since NCCL uses one number for all servers. `nvlink`: two NVLinks with a switch between.
  /// `pcie`: from one processor's GPU to the other's, 4 PCIe links and the link between sockets.
  /// `network`: two ports and four PCIe links of a DGX A100, the slowest among DGX servers.
  Seconds contained{};
};

/// What one channel carries.
struct ChannelLimits {
  ByGeneration ring_ll128{};  ///< rings with LL128
  ByGeneration tree_ll128{};  ///< trees with LL128
  ByGeneration tree{};        ///< trees
  ByGeneration nvls_tree{};   ///< NVLSTree
};

/// What is left of the bandwidth.
struct Shares {
  std::array<double, 4> nvls{};  ///< with NVLS, by generation
  double ring_ll = 0.5;          ///< to a ring with LL
  double gather_ll = 0.5;        ///< the same on one node where nothing is reduced
  double pat = 0;                ///< with PAT; 0: this version has none
};

/// Times in microseconds and bandwidths in GB/s, as NCCL's source has them; tuning.hpp has the
/// formulas.
struct Constants {
  std::string version;  ///< "2.28.9"
  ByAlgorithm base{};   ///< fixed time
  LinkSteps nvlink, pcie;
  LinkSteps network;          ///< between nodes
  double ll_among_nodes = 1;  ///< factor of LL's steps within a node with several nodes
  ByGeneration ll_total{};    ///< LL, all channels together
  double ampere_total = 0;    ///< all channels of a ring on an A100; 0: no limit
  ChannelLimits channel;
  Shares share;
  bool processor_overhead = true;  ///< does a step within a node wait for the network's proxy?
  bool proxies = true;             ///< may a GPU reach an adapter over another GPU?

  /// Steps on one node.
  [[nodiscard]] const LinkSteps& within(bool over_nvlink) const {
    return over_nvlink ? nvlink : pcie;
  }
};

/// Versions whose constants are known, oldest first.
const std::vector<Constants>& constants_by_version();

/// Three whole numbers with dots between?
bool is_version(const std::string& text);

/// The constants of the newest known version that is not newer than `version`, the oldest known for
/// older ones. Expects a version.
const Constants& constants_of(const std::string& version);

}  // namespace stratagem::cost::nccl

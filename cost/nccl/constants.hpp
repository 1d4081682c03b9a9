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

/// Times in microseconds and bandwidths in GB/s, as NCCL's source has them; tuning.hpp has the
/// formulas.
struct Constants {
  std::string version;    ///< "2.28.9"
  ByAlgorithm base{};     ///< fixed time
  ByAlgorithm nvlink{};   ///< per step over NVLink
  ByAlgorithm pcie{};     ///< per step over PCIe
  ByAlgorithm network{};  ///< per step between nodes
  /// The latency of links that the steps contain, by the latencies in topology/presets. Assumed,
  /// since NCCL uses one number for all servers. `nvlink`: two NVLinks with a switch between.
  /// `pcie`: from one processor's GPU to the other's, 4 PCIe links and the link between sockets.
  /// `network`: two ports and four PCIe links of a DGX A100, the slowest among DGX servers.
  Seconds nvlink_links = 50_ns;
  Seconds pcie_links = 700_ns;
  Seconds network_links = 1.8_us;
  ByGeneration ll_total{};         ///< LL, all channels together
  ByGeneration ring_ll128{};       ///< rings with LL128, per channel
  ByGeneration tree_ll128{};       ///< trees with LL128, per channel
  ByGeneration tree{};             ///< trees, per channel
  ByGeneration nvls_tree{};        ///< NVLSTree, per channel
  std::array<double, 4> nvls{};    ///< what is left of the bandwidth with NVLS
  double ring_ll_share = 0.5;      ///< of the bandwidth that LL leaves a ring
  double gather_ll_share = 0.5;    ///< the same on one node where nothing is reduced
  double ll_among_nodes = 1;       ///< factor of LL's steps within a node with several nodes
  double ampere_total = 0;         ///< all channels of a ring on an A100; 0: no limit
  double pat_share = 0;            ///< of the bandwidth; 0: this version has no PAT
  bool processor_overhead = true;  ///< does a step within a node wait for the network's proxy?
  bool proxies = true;             ///< may a GPU reach an adapter over another GPU?
};

/// Versions whose constants are known, oldest first.
const std::vector<Constants>& constants_by_version();

/// Three whole numbers with dots between?
bool is_version(const std::string& text);

/// The constants of the newest known version that is not newer than `version`, the oldest known for
/// older ones. Expects a version.
const Constants& constants_of(const std::string& version);

}  // namespace stratagem::cost::nccl

// Small GPTs through the real strategies and the real lowering.
#pragma once

#include <algorithm>
#include <string_view>

#include "cost/stack.hpp"
#include "lowering/lower.hpp"
#include "model/zoo/gpt.hpp"
#include "sim/folding/folding.hpp"
#include "strategies/parallel/all.hpp"
#include "topology/presets.hpp"

namespace stratagem::sim {

/// Sizes that 8 tensor ranks and `options.data` data ranks divide; one sample per micro-batch and
/// data rank.
inline program::Program lowered_gpt(int layers, int micro_batches,
                                    const strategies::Options& options,
                                    const cost::Stack& stack = {}) {
  const model::Graph graph = model::gpt({.layers = layers,
                                         .hidden = 64,
                                         .heads = 8,
                                         .sequence = 16,
                                         .vocabulary = 128,
                                         .batch = options.data});
  const auto strategy = JsonReader::from_text("{}", "test");
  return lowering::lower(strategies::compose(graph, micro_batches, options, strategy), stack);
}

inline topology::Cluster cluster(std::string_view preset, int nodes) {
  const auto& all = topology::presets();
  return std::ranges::find(all, preset, &topology::Preset::name)->build(nodes);
}

/// Usable shares 1, steps 0, whatever links take.
inline cost::CollectiveConstants ideal_network() {
  cost::CollectiveConstants constants;
  constants.nvlink_efficiency.value = 1;
  constants.network_efficiency.value = 1;
  constants.pcie_efficiency.value = 1;
  constants.node_link_latency = constants.network_link_latency = constants.host_link_latency =
      cost::Constant<Seconds>{.value = 1_s};
  return constants;
}

/// GPUs on one switch, each by a link of its own; unless a test says otherwise so fast that no
/// message takes a picosecond.
inline topology::Cluster instant_cluster(int gpus, BytesPerSecond bandwidth = {1e30}) {
  topology::NodeDesign design{.name = "instant", .gpu = "test", .vertices = {}, .links = {}};
  const auto hub = design.add(topology::VertexKind::nv_switch, "hub");
  for (int i = 0; i < gpus; ++i) {
    const auto gpu = design.add(topology::VertexKind::gpu, "gpu" + std::to_string(i));
    design.join(gpu, hub, topology::LinkKind::nvlink, 1, bandwidth, 0_s);
  }
  return {design, 1, {1e30}, 0_s};
}

}  // namespace stratagem::sim

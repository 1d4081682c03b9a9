// The GPT that the benchmarks of lowering, folding and running share.
#pragma once

#include <algorithm>

#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "lowering/lower.hpp"
#include "model/zoo/gpt.hpp"
#include "strategies/parallel/all.hpp"
#include "topology/presets.hpp"

namespace stratagem::bench {

/// GPT-2 with 24 layers (0.35B parameters), tied embeddings, `samples` in one micro-batch.
inline model::Graph gpt_24_layers(int samples) {
  return model::gpt({.layers = 24,
                     .hidden = 1024,
                     .heads = 16,
                     .sequence = 1024,
                     .vocabulary = 51200,
                     .batch = samples});
}

inline strategies::Plan plan(const model::Graph& graph, int micro_batches,
                             const strategies::Options& options) {
  return strategies::compose(graph, micro_batches, options,
                             JsonReader::from_text("{}", "benchmark"));
}

inline topology::Cluster dgx_2h(int nodes) {
  const auto& presets = topology::presets();
  return std::ranges::find(presets, "dgx-2h", &topology::Preset::name)->build(nodes);
}

/// Paths are relative to the repository's root.
inline cost::Profile v100() { return cost::read_profile("scenarios/profiles/v100-sxm3-450w.json"); }
inline cost::Stack megatron() { return cost::read_stack("scenarios/stacks/megatron-2019.json"); }

}  // namespace stratagem::bench

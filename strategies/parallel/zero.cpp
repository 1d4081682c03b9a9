// ZeRO: data-parallel ranks keep shards of what belongs to the weights.
#include <string>
#include <utility>
#include <vector>

#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {

/// op-trans of the optimizer's steps (stage 1), of the gradients that they read (2), and of the
/// parameters themselves (3: an identity between weight and operator, divided where the operator is
/// not) over all ranks that would keep the same: those that divide the batch, the tokens or, for
/// what is not of an expert, the experts. The lowering finds reduce-scatters of gradients, and
/// gathers of weights after the steps or, in stage 3, before each pass of a segment: 2, 2, 2 and 3
/// times the parameters per rank and step. Where there is one such rank nothing is divided, and
/// only a framework that gathers nonetheless (cost::ShardCollectives) does anything in stage 3.
/// Stages 2 and 3 reduce the gradients of every micro-batch. Sources: Rajbhandari et al., ZeRO, SC
/// 2020, arXiv:1910.02054; groups of ranks, that is hybrid sharding: Zhao et al., PyTorch FSDP,
/// VLDB 2023, arXiv:2304.11277, section 3.2.2.
void zero(Plan& plan, const Options& options) {
  if (options.zero.stage == 0) return;
  const int together = options.zero.ranks > 0 ? options.zero.ranks : options.data / options.expert;
  std::vector<std::string> axes;
  if (together > 1) axes.emplace_back("data");
  if (options.expert > 1) axes.emplace_back("expert");
  if (options.context > 1) axes.emplace_back("context");
  const bool gathers = options.zero.stage == 3 && !options.offload.parameters;
  if (axes.empty() && !gathers) return;
  plan.shards = {.of = static_cast<WeightShards::Of>(options.zero.stage),
                 .axes = std::move(axes),
                 .prefetch = options.zero.stage == 3 ? options.zero.prefetch : 0,
                 .whole_below = options.zero.whole_below};
}

}  // namespace stratagem::strategies

// ZeRO-Offload and ZeRO-Infinity: optimizer steps on the processors of the server, with their
// states in its memory or on its drives, and parameters beside them.
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {

/// op-assign of all optimizer steps to the host. The lowering finds the copies of gradients to it,
/// behind their reduction, and of weights back from it: twice the bytes of the weights per rank (of
/// its shards, with ZeRO) for one micro-batch. What the host does to add up the gradients of
/// several micro-batches is not modelled. Source: Ren et al., ZeRO-Offload, USENIX ATC 2021,
/// arXiv:2101.06840, sections 4 and 5.2 (delayed updates). Or of the parameters, too, which are
/// fetched segment by segment: ZeRO-Infinity, arXiv:2104.07857. Either may live on the drives,
/// behind that memory; gradients stay in it.
void offload(Plan& plan, const Options& options) {
  plan.steps_on_host = options.offload.optimizer;
  plan.parameters_on_host = options.offload.parameters;
  plan.states_on_drives = options.offload.states_on_drives;
  plan.parameters_on_drives = options.offload.parameters_on_drives;
  plan.delayed_update = options.offload.delayed_update;
  if (options.offload.parameters) plan.shards.prefetch = options.zero.prefetch;
}

}  // namespace stratagem::strategies

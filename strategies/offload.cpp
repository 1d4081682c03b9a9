// ZeRO-Offload: optimizer steps on the processors of the server.
#include "strategies/all.hpp"

namespace stratagem::strategies {

/// op-assign of all optimizer steps to the host. The lowering finds the copies of gradients to it,
/// behind their reduction, and of weights back from it: twice the bytes of the weights per rank (of
/// its shards, with ZeRO) for one micro-batch. What the host does to add up the gradients of
/// several micro-batches is not modelled. Source: Ren et al., ZeRO-Offload, USENIX ATC 2021,
/// arXiv:2101.06840, section 4; without its delayed update.
void offload(Plan& plan, const Options& options) {
  plan.steps_on_host = options.offload == "optimizer";
}

}  // namespace stratagem::strategies

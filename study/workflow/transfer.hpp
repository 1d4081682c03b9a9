// How new weights get to GPUs that divide them in another way, or to those of another pool.
#pragma once

#include "base/quantity.hpp"
#include "study/run.hpp"
#include "study/workflow/model_states.hpp"

namespace stratagem::study {

/// One side of a transfer: a run, and the parameters that its devices have.
struct TransferSide {
  const Run& run;
  const ModelStates& states;
};

/// The time in which each GPU of `to` receives what it lacks of the parameters that `from` has,
/// too: on the same GPUs, or on those of another pool, whose servers stand beside those of `from`
/// on the same fabric. Each piece comes from one GPU that holds it, of the same server if there is
/// one; shards come from all ranks that have a share. All pieces for a pair of GPUs are one
/// message, and all messages go at once: frameworks that bring parameters one by one take longer.
/// Throws InputError for pools whose servers differ.
Seconds transfer_time(const TransferSide& from, const TransferSide& to, bool same_gpus);

}  // namespace stratagem::study

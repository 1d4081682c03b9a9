// What measured collectives add to NCCL's own prediction.
#pragma once

#include <optional>

#include "cost/nccl/tuning.hpp"
#include "cost/profile.hpp"

namespace stratagem::cost::nccl {

/// With l and b the latency and bandwidth that NCCL predicts for the way that it chose:
///
///     t = added + latency_factor l + payload / (nvlink b) + payload / copy
///
/// The choice is NCCL's, by its uncorrected prediction. `nvlink` is what an NVLink carries over what
/// NCCL's search takes it for, and counts within one server over NVLink; the network's speed is kept.
/// A cable of 25 GB/s is searched as 20, and carries nvlink_efficiency of its datasheet's rate times
/// bandwidth_factor, where that was fitted. `copy` is a time for each byte that does not depend on the
/// number of ranks: two A100 reach less bus bandwidth than eight. Without constants latency is
/// predicted as it is, and nothing is copied.
/// Fitted: `stratagem calibrate fit`, to all-reduces of 1 MiB to 1 GiB on 2, 4 and 8 GPUs. Error on
/// 3, 5, 6 and 7 GPUs: docs/network.md. Not measured: other collectives, several servers, below 1
/// MiB.
Estimate corrected(const Estimate& chosen, const Communicator& communicator,
                   const std::optional<NcclConstants>& constants, double nvlink);

}  // namespace stratagem::cost::nccl

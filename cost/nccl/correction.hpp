// What measured collectives add to NCCL's own prediction.
#pragma once

#include <optional>

#include "cost/nccl/tuning.hpp"
#include "cost/profile.hpp"

namespace stratagem::cost::nccl {

/// With l and b the latency and bandwidth that NCCL predicts for the way that it chose:
///
///     t = added + latency_factor l + payload / (bandwidth_factor b) + payload / copy
///
/// The choice is NCCL's, by its uncorrected prediction. `bandwidth_factor` counts within one server
/// over NVLink: its search takes a cable of 25 GB/s for 20, and more is measured; the network's speed
/// is kept. `copy` is a time for each byte that does not depend on the number of ranks: two A100
/// reach less bus bandwidth than eight. Without constants the prediction stays as it is.
/// Fitted: `stratagem calibrate fit`, to all-reduces of 1 MiB to 1 GiB on 2, 4 and 8 GPUs. Error on
/// 3, 5, 6 and 7 GPUs: docs/network.md. Not measured: other collectives, several servers, below 1
/// MiB.
Estimate corrected(const Estimate& chosen, const Communicator& communicator,
                   const std::optional<NcclConstants>& constants);

}  // namespace stratagem::cost::nccl

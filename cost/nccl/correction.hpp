// The correction of NCCL's own prediction by measured collectives.
#pragma once

#include <optional>

#include "cost/nccl/tuning.hpp"
#include "cost/profile.hpp"

namespace stratagem::cost::nccl {

/// With l and b the latency and bandwidth that NCCL predicts for the way that it chose:
///
///     t = added + latency_factor l + payload / (nvlink b) + payload / copy
///
/// The algorithm and protocol are chosen by NCCL's uncorrected prediction. `nvlink` is the rate of
/// an NVLink relative to what NCCL's search counts on; it applies within one server over NVLink,
/// and the network's speed stays as it is. For a cable of 25 GB/s the search counts on 20; we
/// predict nvlink_efficiency of the datasheet's rate, times bandwidth_factor where that was fitted.
/// `copy` is a time for each byte that does not depend on the number of ranks: two A100 reach less
/// bus bandwidth than eight. Without fitted constants the latency stays as predicted, and there is
/// no copy.
/// Fitted: `stratagem calibrate fit`, to all-reduces of 1 MiB to 1 GiB on 2, 4 and 8 GPUs. Error on
/// 3, 5, 6 and 7 GPUs: docs/internals/network.md. Not measured: other collectives, several servers,
/// below 1 MiB.
Estimate corrected(const Estimate& chosen, const Communicator& communicator,
                   const std::optional<NcclConstants>& constants, double nvlink);

}  // namespace stratagem::cost::nccl

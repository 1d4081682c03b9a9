// Applies the fitted constants to an estimate.
#include "cost/nccl/correction.hpp"

namespace stratagem::cost::nccl {

Estimate corrected(const Estimate& chosen, const Communicator& communicator,
                   const std::optional<NcclConstants>& constants) {
  if (!constants) return chosen;
  const bool nvlink =
      communicator.nodes == 1 && communicator.common.ring.type_intra <= PathType::nvlink_relay;
  const double factor = nvlink ? constants->bandwidth_factor.value : 1;
  const double seconds_per_byte =
      1 / (factor * chosen.bandwidth.value) + 1 / constants->copy.value.value;
  Estimate now = chosen;
  now.latency = constants->added.value + constants->latency_factor.value * chosen.latency;
  now.bandwidth = BytesPerSecond{1 / seconds_per_byte};
  return now;
}

}  // namespace stratagem::cost::nccl

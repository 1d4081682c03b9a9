// Applies the fitted constants to an estimate.
#include "cost/nccl/correction.hpp"

namespace stratagem::cost::nccl {

Estimate corrected(const Estimate& chosen, const Communicator& communicator,
                   const std::optional<NcclConstants>& constants, double nvlink) {
  const bool over_nvlink =
      communicator.nodes == 1 && communicator.common.ring.type_intra <= PathType::nvlink_relay;
  Estimate now = chosen;
  if (over_nvlink) now.bandwidth = nvlink * chosen.bandwidth;
  if (!constants) return now;
  const double seconds_per_byte = 1 / now.bandwidth.value + 1 / constants->copy.value.value;
  now.latency = constants->added.value + constants->latency_factor.value * chosen.latency;
  now.bandwidth = BytesPerSecond{1 / seconds_per_byte};
  return now;
}

}  // namespace stratagem::cost::nccl

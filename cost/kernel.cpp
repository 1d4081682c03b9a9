// The duration of a kernel by its kind.
#include "cost/kernel.hpp"

#include <string>

#include "base/input_error.hpp"
#include "cost/gemm.hpp"

namespace stratagem::cost {

Seconds kernel_time(const Kernel& kernel, const Profile& profile) {
  const Seconds floor = profile.kernel_floor.value;
  if (kernel.kind == KernelKind::gemm) {
    return gemm_time(kernel, profile) + (kernel.launches - 1) * floor;
  }
  const std::string kind{kernel_kind_names.at(static_cast<std::size_t>(kernel.kind))};
  const auto share = profile.streaming.find(kind);
  if (share == profile.streaming.end()) {
    throw InputError("profile " + profile.name, "/streaming/" + kind,
                     "a share of the memory bandwidth for this kind of kernel", "");
  }
  return kernel.launches * floor +
         kernel.traffic / (profile.memory_bandwidth.value * share->second.value);
}

}  // namespace stratagem::cost

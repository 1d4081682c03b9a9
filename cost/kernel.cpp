// The duration of a kernel by its kind.
#include "cost/kernel.hpp"

#include <string>

#include "base/input_error.hpp"
#include "cost/gemm.hpp"

namespace stratagem::cost {

std::vector<std::string> streaming_kinds() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < kernel_kind_names.size(); ++kind) {
    const auto id = static_cast<KernelKind>(kind);
    if (id == KernelKind::gemm || concerns_host(id)) continue;
    names.emplace_back(kernel_kind_names[kind]);
  }
  return names;
}

Seconds kernel_time(const Kernel& kernel, const Profile& profile) {
  const Seconds floor = profile.kernel_floor.value;
  if (kernel.kind == KernelKind::gemm) {
    return gemm_time(kernel, profile) + (kernel.launches - 1) * floor;
  }
  if (kernel.kind == KernelKind::host_copy) {
    return kernel.launches * profile.host_copy.latency.value +
           kernel.traffic / profile.host_copy.bandwidth.value;
  }
  if (kernel.kind == KernelKind::host_optimizer) {
    if (!profile.host_memory_bandwidth) {
      throw InputError("profile " + profile.name, "/host_memory_bandwidth",
                       "a bandwidth for optimizer steps on the host", "");
    }
    return kernel.traffic / profile.host_memory_bandwidth->value;
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

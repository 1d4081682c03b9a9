// The duration of a kernel by its kind.
#include "cost/kernel_time.hpp"

#include <algorithm>
#include <string>

#include "base/input_error.hpp"
#include "cost/gemm.hpp"

namespace stratagem::cost {

AttentionShape attention_shape(const Kernel& kernel) {
  const double heads = static_cast<double>(kernel.batch * kernel.piece.of);
  const double queries = static_cast<double>(kernel.m), keys = static_cast<double>(kernel.n);
  // Documents are as many samples more.
  const bool packed = kernel.seen.longest_document > 0;
  const double longest = packed ? static_cast<double>(kernel.seen.longest_document) : queries;
  const double together = std::min(queries, longest);
  return {.heads = heads * (queries / together),
          .queries = together,
          .keys = packed ? longest : keys,
          .causal = !kernel.seen.all,
          .window = static_cast<double>(kernel.seen.window),
          .packed = packed ? static_cast<double>(kernel.seen.twice_pairs) / (2 * keys) : 0,
          .before = static_cast<double>(kernel.seen.before),
          .divides_keys = kernel.seen.in_cache};
}

namespace {

/// A fused kernel reads and writes its operands once.
Seconds attention_time(const Kernel& kernel, const Profile& profile,
                       const std::vector<std::string>& preferred) {
  const auto chosen = chosen_attention(profile.kernels.attention, preferred);
  if (chosen == profile.kernels.attention.end()) {
    throw InputError("profile " + profile.name, "/attention",
                     "constants of an implementation of fused attention that the stack prefers",
                     "");
  }
  const auto peak = profile.peak.find(model::to_text(kernel.type));
  if (peak == profile.peak.end()) {
    throw InputError("profile " + profile.name, "/peak/" + model::to_text(kernel.type),
                     "a data type that this GPU has constants for", "");
  }
  const AttentionShape shape = attention_shape(kernel);
  const double share =
      attention_share(chosen->second, kernel.kind == KernelKind::attention,
                      static_cast<double>(kernel.k), shape, profile.multiprocessors.value);
  const Seconds compute = kernel.flops / (peak->second.value * share);
  const Seconds memory = kernel.traffic / (profile.memory.bandwidth.value *
                                           profile.kernels.streaming.at("elementwise").value);
  return kernel.launches * profile.kernels.floor.value + std::max(compute, memory);
}

/// The share of the memory bandwidth of the kernel's pass, or of its kind.
double streaming_share(const Kernel& kernel, const Profile& profile) {
  const std::string kind = to_text(kernel.kind);
  if (kernel.pass != KernelPass::either) {
    if (const auto found = profile.kernels.by_pass.find(kind);
        found != profile.kernels.by_pass.end()) {
      const PassShares& shares = found->second;
      return (kernel.pass == KernelPass::forward ? shares.forward : shares.gradient).value;
    }
  }
  const auto share = profile.kernels.streaming.find(kind);
  if (share == profile.kernels.streaming.end()) {
    throw InputError("profile " + profile.name, "/streaming/" + kind,
                     "a share of the memory bandwidth for this kind of kernel", "");
  }
  return share->second.value;
}

}  // namespace

Seconds kernel_time(const Kernel& kernel, const Profile& profile,
                    const std::vector<std::string>& preferred_attention) {
  const Seconds floor = profile.kernels.floor.value;
  if (kernel.kind == KernelKind::gemm) {
    Kernel product = kernel;
    product.flops = kernel.piece.of * kernel.flops;
    product.traffic = kernel.piece.of * kernel.traffic;
    return gemm_time(product, profile) / kernel.piece.of + (kernel.launches - 1) * floor;
  }
  if (is_attention(kernel.kind)) return attention_time(kernel, profile, preferred_attention);
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
  return kernel.launches * floor +
         kernel.traffic / (profile.memory.bandwidth.value * streaming_share(kernel, profile));
}

}  // namespace stratagem::cost

// How long a kernel takes on a GPU that has nothing else to do.
#pragma once

#include <string>
#include <vector>

#include "cost/attention.hpp"
#include "cost/kernel.hpp"
#include "cost/profile.hpp"

namespace stratagem::cost {

/// The heads, queries and keys of fused attention.
AttentionShape attention_shape(const Kernel& kernel);

/// Device time of a kernel on an otherwise idle GPU, launches not waited for.
///   gemm:    gemm_time of the product, see gemm.hpp, / pieces, and (launches - 1) * kernel_floor
///   attention: launches * kernel_floor
///            + max(flops / (peak * share), traffic / (memory_bandwidth * streaming[elementwise]))
///            share: attention.hpp, of the first implementation that is preferred and known
///   host_copy: launches * host_copy.latency + traffic / host_copy.bandwidth
///   host_optimizer: traffic / host_memory_bandwidth, if no other rank of the server uses it
///   others:  launches * kernel_floor + traffic / (memory_bandwidth * share)
/// `share` is that of the kernel's pass (streaming_by_pass), or where it has none that of its kind
/// (streaming).
/// Throws InputError if the profile lacks a constant for the kernel's kind or data type.
Seconds kernel_time(const Kernel&, const Profile&,
                    const std::vector<std::string>& preferred_attention = {
                        std::string(usual_attention)});

}  // namespace stratagem::cost

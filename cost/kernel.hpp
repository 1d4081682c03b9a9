// What a device is asked to compute, reduced to what its duration depends on.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "cost/profile.hpp"
#include "model/tensor.hpp"

namespace stratagem::cost {

/// Kinds of kernels that reach different shares of the hardware's peak rates.
enum class KernelKind : std::uint8_t {
  gemm,
  elementwise,
  activation_function,
  dropout,
  softmax,
  norm,
  reduction,
  embedding,
  cross_entropy,
  optimizer,
  host_copy,       ///< between device and host memory, one launch a copy
  host_optimizer,  ///< on the processors of the server; `traffic` is of their memory
};
inline constexpr std::array<std::string_view, 12> kernel_kind_names = {
    "gemm",      "elementwise", "activation_function", "dropout",   "softmax",   "norm",
    "reduction", "embedding",   "cross_entropy",       "optimizer", "host_copy", "host_optimizer"};

/// Copies between device and host, and what the host computes: no work of the device.
constexpr bool concerns_host(KernelKind kind) {
  return kind == KernelKind::host_copy || kind == KernelKind::host_optimizer;
}

/// The kinds that move device memory and need a share of its bandwidth: not gemm, whose constants
/// are its own, and not what concerns the host.
std::vector<std::string> streaming_kinds();

/// One logical operation on one device, as `launches` kernels in a row.
/// A GEMM is `batch` products (m, k) x (k, n); `flops` counts 2*m*n*k*batch, 0 for the others.
/// `traffic` is what the kernels read from and write to device memory altogether.
struct Kernel {
  KernelKind kind = KernelKind::elementwise;
  model::DataType type = model::DataType::fp16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  Flops flops;
  Bytes traffic;
  int launches = 1;

  friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

/// Device time of a kernel on an otherwise idle GPU, launches not waited for.
///   gemm:    gemm_time, see gemm.hpp, and (launches - 1) * kernel_floor
///   host_copy: launches * host_copy.latency + traffic / host_copy.bandwidth
///   host_optimizer: traffic / host_memory_bandwidth, if no other rank of the server uses it
///   others:  launches * kernel_floor + traffic / (memory_bandwidth * streaming[kind])
/// Throws InputError if the profile lacks a constant for the kernel's kind or data type.
Seconds kernel_time(const Kernel&, const Profile&);

}  // namespace stratagem::cost

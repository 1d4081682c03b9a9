// A kernel, reduced to what its duration depends on.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
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
  norm,  ///< layer norm
  rms_norm,
  reduction,
  embedding,
  cross_entropy,
  optimizer,
  attention,           ///< fused: one kernel from queries, keys and values to their result
  attention_backward,  ///< likewise
  host_copy,           ///< between device and host memory, one launch a copy
  host_optimizer,      ///< on the processors of the server; `traffic` is of their memory
};
inline constexpr std::array<std::string_view, 15> kernel_kind_names = {
    "gemm",      "elementwise", "activation_function", "dropout",   "softmax",
    "norm",      "rms_norm",    "reduction",           "embedding", "cross_entropy",
    "optimizer", "attention",   "attention_backward",  "host_copy", "host_optimizer"};

inline std::string to_text(KernelKind kind) {
  return std::string(kernel_kind_names.at(static_cast<std::size_t>(kind)));
}
/// Expects that there is one of that name.
KernelKind kernel_kind(std::string_view name);

/// Copies between device and host, and what the host computes: no work of the device.
constexpr bool concerns_host(KernelKind kind) {
  return kind == KernelKind::host_copy || kind == KernelKind::host_optimizer;
}

constexpr bool is_attention(KernelKind kind) {
  return kind == KernelKind::attention || kind == KernelKind::attention_backward;
}

/// Kernels of which frameworks have their own. Products and fused attention are the same libraries'
/// in all of them.
constexpr bool is_frameworks_own(KernelKind kind) {
  return kind != KernelKind::gemm && !is_attention(kind) && !concerns_host(kind);
}

/// The pass that a kernel belongs to: in some kinds the passes reach different shares of the
/// bandwidth.
enum class KernelPass : std::uint8_t {
  either,  ///< not known, or a kind that has one pass only
  forward,
  gradient  ///< of inputs or weights
};

/// The kinds that need a share of the device memory's bandwidth: not gemm and fused attention,
/// which have constants of their own, and not kinds that concern the host.
std::vector<std::string> streaming_kinds();

/// One logical operation on one device, as `launches` kernels in a row.
/// `flops` are hardware FLOPs. A GEMM is `batch` products (m, k) x (k, n): 2*m*n*k*batch. For fused
/// attention they are those of its products, without the half of all pairs of tokens that a causal
/// mask hides. For other kernels they are 0.
/// m, n and k are then queries, keys and the size of a head, batch is that of heads.
/// `traffic` is what the kernels read from and write to device memory altogether.
struct Kernel {
  KernelKind kind = KernelKind::elementwise;
  model::DataType type = model::DataType::fp16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  Flops flops;
  Bytes traffic;
  int launches = 1;
  KernelPass pass = KernelPass::either;
  double slowdown = 1;  ///< device time over that of the profile's kernel (OperatorKernels)
  /// Of a product in 16 bits: bytes at whose multiples all rows of operands and result begin, if
  /// these are fewer than 16; else 0.
  int alignment = 0;
  /// Of a product that several streams compute in so many equal pieces, whose blocks run beside
  /// each other: this is one of them. `flops`, `traffic` and the time are a piece's, m, n and k the
  /// product's.
  int pieces = 1;
  /// Of a product: multiprocessors on which it does not run, since a collective beside it has them.
  int spared = 0;

  friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

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

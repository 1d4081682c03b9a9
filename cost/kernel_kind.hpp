// Kinds of kernels, by what they reach of the hardware's peak rates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// The kinds that need a share of the device memory's bandwidth: not gemm and fused attention,
/// which have constants of their own, and not kinds that concern the host.
std::vector<std::string> streaming_kinds();

}  // namespace stratagem::cost

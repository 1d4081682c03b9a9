// A kernel, reduced to what its duration depends on.
#pragma once

#include <compare>
#include <cstdint>

#include "base/quantity.hpp"
#include "cost/kernel_kind.hpp"
#include "model/tensor.hpp"

namespace stratagem::cost {

/// The pass that a kernel belongs to: in some kinds the passes reach different shares of the
/// bandwidth.
enum class KernelPass : std::uint8_t {
  either,  ///< not known, or a kind that has one pass only
  forward,
  gradient  ///< of inputs or weights
};

/// Which pairs of queries and keys a fused attention computes.
struct SeenKeys {
  bool all = false;         ///< no causal mask hides any
  std::int64_t window = 0;  ///< the last keys that a query sees; 0: all up to its own
  /// Of packed documents: the tokens of the longest, and twice the pairs of a query and a key that
  /// see each other, of one head of a whole sample; 0: a sample is one document.
  std::int64_t longest_document = 0, twice_pairs = 0;
  std::int64_t before = 0;  ///< keys before the first query's own, which all queries see
  bool in_cache = false;    ///< keys come from a cache, and may be divided, too (attention.hpp)

  friend auto operator<=>(const SeenKeys&, const SeenKeys&) = default;
};

/// Who launches the kernels of an operation, which says what they cost the host.
enum class LaunchedBy : std::uint8_t {
  framework,  ///< the framework launches each.
  loop,       ///< the framework launches the first, a library the others in a loop.
  library,    ///< a library launches all, within the framework's call of another operation.
  graph,      ///< the framework launches a CUDA graph, which begins with them.
  replay      ///< a CUDA graph that was launched before has them.
};

/// A kernel that is one of several equal pieces on as many streams, whose blocks run beside each
/// other: together they leave multiprocessors as idle as one kernel would.
struct PieceOnStreams {
  /// How many. `flops`, `traffic` and the time of the kernel are a piece's. Of a product m, n and k
  /// are those of all pieces together, of attention those of one.
  int of = 1;
  /// Multiprocessors on which the product does not run, since a collective beside it has them.
  int spared = 0;
  friend auto operator<=>(const PieceOnStreams&, const PieceOnStreams&) = default;
};

/// One logical operation on one device, as `launches` kernels in a row.
/// `flops` are hardware FLOPs. A GEMM is `batch` products (m, k) x (k, n): 2*m*n*k*batch. For fused
/// attention they are those of its products, without the half of all pairs of tokens that a causal
/// mask hides, and those that a window hides. For other kernels they are 0.
/// m, n and k are then queries, keys and the size of a head, batch is that of heads.
/// `traffic` is what the kernels read from and write to device memory altogether.
struct Kernel {
  KernelKind kind = KernelKind::elementwise;
  model::DataType type = model::DataType::fp16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  Flops flops;
  Bytes traffic;
  int launches = 1;
  LaunchedBy by = LaunchedBy::framework;
  KernelPass pass = KernelPass::either;
  double slowdown = 1;  ///< device time over that of the profile's kernel (OperatorKernels)
  /// Of a product in 16 bits: bytes at whose multiples all rows of operands and result begin, if
  /// these are fewer than 16; else 0.
  int alignment = 0;
  PieceOnStreams piece = {};
  SeenKeys seen = {};  ///< of fused attention

  friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

}  // namespace stratagem::cost

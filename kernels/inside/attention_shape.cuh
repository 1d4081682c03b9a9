// What every kernel of attention knows of its shape.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/attention.hpp"

namespace stratagem::kernels {

/// Heads are counted over the batch; a head of keys serves `group` heads of queries.
struct AttentionShape {
  explicit AttentionShape(const Attention& a)
      : heads(a.batch * a.heads),
        kv_heads(a.batch * a.kv_heads),
        group(a.heads / a.kv_heads),
        queries(a.queries),
        keys(a.keys),
        size(static_cast<int>(a.size)),
        causal(a.causal),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(a.size)))) {}

  /// Keys that a query sees; of queries that do not exist all keys.
  __device__ std::int64_t seen_by(std::int64_t query) const {
    const std::int64_t seen = keys - queries + query + 1;
    return causal && seen < keys ? seen : keys;
  }
  /// First query that sees a key.
  __device__ std::int64_t first_to_see(std::int64_t key) const {
    const std::int64_t first = key - (keys - queries);
    return causal && first > 0 ? first : 0;
  }

  std::int64_t heads, kv_heads, group, queries, keys;
  int size;
  bool causal;
  float scale;
};

inline constexpr float log2_of_e = 1.44269504088896341F, log_of_2 = 0.693147180559945309F;

}  // namespace stratagem::kernels

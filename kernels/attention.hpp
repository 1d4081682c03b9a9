// Scaled dot-product attention, with its gradient.
#pragma once

#include <cstdint>

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// q (batch, heads, queries, size); k and v (batch, kv_heads, keys, size), where heads / kv_heads
/// heads share each. Scores are scaled by 1 / sqrt(size). `causal`: the last query sees all keys,
/// the one before it all but one, and so on.
struct Attention {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t size = 0;
  bool causal = false;
};

/// out (batch, heads, queries, size) = softmax(q k^T / sqrt(size)) v. `log_sums` (batch, heads,
/// queries), the logarithm of the sum of exponentials, is what the backward pass needs to compute
/// probabilities again; scores are kept for a few queries at a time only. Dao, FlashAttention-2,
/// arXiv:2307.08691, algorithm 1. Throws BrokenPromise unless kv_heads divides heads and, if
/// causal, queries <= keys.
template <typename T>
void attention(const Attention& shape, In<T> q, In<T> k, In<T> v, Out<T> out, Out<T> log_sums);

template <typename T>
void attention_gradient(const Attention& shape, In<T> dout, In<T> q, In<T> k, In<T> v, In<T> out,
                        In<T> log_sums, Out<T> dq, Out<T> dk, Out<T> dv);

}  // namespace stratagem::kernels

// Scaled dot-product attention, with its gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// q (batch, heads, queries, size); k (batch, kv_heads, keys, size) and v (batch, kv_heads, keys,
/// value_size), where heads / kv_heads heads share each. Scores are scaled by 1 / sqrt(size).
/// `causal`: the last query sees all keys, the one before it all but one, and so on.
struct Attention {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t size = 0;
  bool causal = false;
  std::int64_t values = 0;  ///< 0: as wide as keys
  std::int64_t window = 0;  ///< if causal: a query sees so many of the last keys; 0: all
  /// If causal, the first key of every document; a query sees none before its own document. Empty:
  /// there is one.
  std::vector<std::int64_t> documents = {};

  [[nodiscard]] std::int64_t value_size() const { return values > 0 ? values : size; }
};

/// out (batch, heads, queries, value_size) = softmax(q k^T / sqrt(size)) v. `log_sums` (batch,
/// heads, queries), the logarithm of the sum of exponentials, is what the backward pass needs to
/// compute probabilities again; scores are kept for a few queries at a time only. Dao,
/// FlashAttention-2, arXiv:2307.08691, algorithm 1. Throws BrokenPromise unless kv_heads divides
/// heads and, if causal, queries <= keys. `sinks` (heads), or none: a score beside those of the
/// keys, which has no value.
template <typename T>
void attention(const Attention& shape, In<T> q, In<T> k, In<T> v, Out<T> out, Out<T> log_sums,
               In<T> sinks = {});

/// A gradient without room for it is not computed.
template <typename T>
void attention_gradient(const Attention& shape, In<T> dout, In<T> q, In<T> k, In<T> v, In<T> out,
                        In<T> log_sums, Out<T> dq, Out<T> dk, Out<T> dv);

/// Of sinks: the sum over all queries of -exp(sink - log_sum) times the product of `dout` and
/// `out`, since a sink's probability takes from those of the keys and has no value. Operands are
/// rows of tokens: dout and out (tokens, heads, value_size), log_sums (tokens, heads). Adds to
/// `dsinks`.
template <typename T>
void attention_sink_gradient(In<T> dout, In<T> out, In<T> log_sums, In<T> sinks, Out<T> dsinks);

/// Which kernel on a GPU computes attention forward: the quickest that takes the shape, or, for
/// tests and measurements, one by name.
enum class AttentionKernel { quickest, wmma, plain };

/// On a GPU fp16 and bf16 are multiplied on tensor cores, and log sums are fp32. That takes heads
/// whose size is a multiple of 8, and operands that begin at multiples of 16 bytes; sizes are
/// rounded up to 64, 128 or 256. Compute capability 7.0 has tensor cores forward only, by WMMA, up
/// to 128, and 7.5 up to 128. Whatever else there is, fp32 always, goes to a slow kernel without
/// tensor cores. Backward takes seven products where one kernel would do with five, so that its
/// sums have one order. Throws DeviceError for heads of more than 256, for windows and for values
/// of another width, and for a shape or type that the kernel asked for does not take.
template <typename T>
void attention(const Stream& stream, const Attention& shape, DeviceIn<T> q, DeviceIn<T> k,
               DeviceIn<T> v, DeviceOut<T> out, DeviceOut<float> log_sums,
               AttentionKernel kernel = AttentionKernel::quickest);

template <typename T>
void attention_gradient(const Stream& stream, const Attention& shape, DeviceIn<T> dout,
                        DeviceIn<T> q, DeviceIn<T> k, DeviceIn<T> v, DeviceIn<T> out,
                        DeviceIn<float> log_sums, DeviceOut<T> dq, DeviceOut<T> dk,
                        DeviceOut<T> dv);

}  // namespace stratagem::kernels

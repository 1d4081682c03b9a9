// Between a token's row and the matrices of every attention head.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

struct Heads {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t size = 0;  ///< of a head

  [[nodiscard]] std::int64_t elements() const { return batch * sequence * heads * size; }
};

/// qkv (batch, sequence, heads, 3, size), a head's query, key and value side by side as in
/// Megatron-LM, to q, k, v (batch, heads, sequence, size).
template <typename T>
void split_heads(const Heads& shape, In<T> qkv, Out<T> q, Out<T> k, Out<T> v);
template <typename T>
void split_heads(const Stream& stream, const Heads& shape, DeviceIn<T> qkv, DeviceOut<T> q,
                 DeviceOut<T> k, DeviceOut<T> v);
template <typename T>
void split_heads_gradient(const Heads& shape, In<T> dq, In<T> dk, In<T> dv, Out<T> dqkv);
template <typename T>
void split_heads_gradient(const Stream& stream, const Heads& shape, DeviceIn<T> dq, DeviceIn<T> dk,
                          DeviceIn<T> dv, DeviceOut<T> dqkv);

/// x (batch, heads, sequence, size) to y (batch, sequence, heads, size).
template <typename T>
void merge_heads(const Heads& shape, In<T> x, Out<T> y);
template <typename T>
void merge_heads(const Stream& stream, const Heads& shape, DeviceIn<T> x, DeviceOut<T> y);
template <typename T>
void merge_heads_gradient(const Heads& shape, In<T> dy, Out<T> dx);
template <typename T>
void merge_heads_gradient(const Stream& stream, const Heads& shape, DeviceIn<T> dy,
                          DeviceOut<T> dx);

}  // namespace stratagem::kernels

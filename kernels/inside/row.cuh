// Kernels that give a block of threads to every row.
#pragma once

#include <algorithm>

#include "kernels/inside/elements.cuh"
#include "kernels/inside/launch.cuh"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// Elements as a thread computes with them.
template <typename T, int count>
struct Values {
  __device__ float& operator[](int i) { return values[i]; }
  __device__ float operator[](int i) const { return values[i]; }
  float values[count];
};

template <int count, typename T>
__device__ Values<T, count> load(const T* from) {
  const auto packet = *reinterpret_cast<const Packet<T, count>*>(from);
  Values<T, count> result;
#pragma unroll
  for (int i = 0; i < count; ++i) result[i] = widen(packet.elements[i]);
  return result;
}

template <typename T, int count>
__device__ void store(const Values<T, count>& values, T* to) {
  Packet<T, count> packet;
#pragma unroll
  for (int i = 0; i < count; ++i) packet.elements[i] = narrow<T>(values[i]);
  *reinterpret_cast<Packet<T, count>*>(to) = packet;
}

/// Calls `work(count, column)` until the block's threads have had all columns: `count()` of them at
/// once, as many as a packet holds, or one.
template <typename T, typename Work>
__device__ void for_columns(std::int64_t columns, bool in_packets, const Work& work) {
  constexpr int count = packet_size<T>;
  if (in_packets) {
    for (std::int64_t c = threadIdx.x * count; c < columns; c += blockDim.x * count)
      work(std::integral_constant<int, count>{}, c);
  } else {
    for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x)
      work(std::integral_constant<int, 1>{}, c);
  }
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// `x` of all threads combined, for all of them. Blocks are of whole warps, 32 at most.
template <typename Combine>
__device__ float over_block(float x, const Combine& combine) {
  __shared__ float of_warp[32];
  for (int apart = 16; apart > 0; apart /= 2)
    x = combine(x, __shfl_xor_sync(0xFFFFFFFFU, x, apart));
  __syncthreads();  // of_warp may still be read from the last time
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) x = combine(x, of_warp[warp]);
  return x;
}

struct RowLaunch {
  Grid grid;
  bool in_packets = false;
};

/// One block a row, of as many threads as packets, 32 to 256.
template <typename T, typename... Pointers>
RowLaunch row_launch(const Rows& shape, Pointers... operands) {
  constexpr std::int64_t count = packet_size<T>;
  const bool in_packets = shape.columns % count == 0 && (aligned(operands, 16) && ...);
  const std::int64_t steps = in_packets ? shape.columns / count : shape.columns;
  const auto warps = static_cast<unsigned>(std::clamp<std::int64_t>((steps + 31) / 32, 1, 8));
  return {.grid = {static_cast<unsigned>(shape.rows), 32 * warps}, .in_packets = in_packets};
}

}  // namespace stratagem::kernels

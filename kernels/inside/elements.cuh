// Elements as device code sees them: read as float, written rounded, several at a time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/half.hpp"

namespace stratagem::kernels {

/// Kernels on GPUs are compiled for these; sums and arithmetic are fp32.
#define STRATAGEM_FOR_DEVICE_ELEMENTS(instantiate) \
  instantiate(float) instantiate(Half) instantiate(BFloat16)

/// What arithmetic is done in: numbers of two bytes widen, all others are as they are.
template <typename T>
using Arithmetic =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(Half x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float widen(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
__device__ inline std::int8_t widen(std::int8_t x) { return x; }

/// Rounds to nearest, ties to even.
template <typename T>
__device__ T narrow(Arithmetic<T> x) {
  if constexpr (std::is_same_v<T, Half>) {
    Half result;
    result.bits = __half_as_ushort(__float2half_rn(x));
    return result;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    BFloat16 result;
    result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return result;
  } else {
    return x;
  }
}

/// `count` elements side by side, moved as one word.
template <typename T, int count>
struct alignas(sizeof(T) * count) Packet {
  T elements[count];
};

/// Elements of T in the widest word that a thread moves.
template <typename T>
inline constexpr int packet_size = 16 / static_cast<int>(sizeof(T));

/// Whether packets of so many bytes may begin here.
inline bool aligned(const void* memory, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(memory) % bytes == 0;
}

}  // namespace stratagem::kernels

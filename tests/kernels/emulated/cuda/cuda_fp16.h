// Numbers of two bytes as CUDA has them, by kernels/half.hpp.
#pragma once

#include <cstdint>

#include "kernels/half.hpp"

struct __half {
  std::uint16_t bits;
};
struct __half2 {
  __half x, y;
};

inline __half __ushort_as_half(std::uint16_t bits) { return {bits}; }
inline std::uint16_t __half_as_ushort(__half x) { return x.bits; }
inline float __half2float(__half x) { return stratagem::kernels::half_value(x.bits); }
inline __half __float2half_rn(float x) { return {stratagem::kernels::half_bits(x)}; }
inline __half2 __floats2half2_rn(float low, float high) {
  return {__float2half_rn(low), __float2half_rn(high)};
}

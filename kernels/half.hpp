// Floating-point numbers of two bytes: IEEE's binary16, and bfloat16.
#pragma once

#include <bit>
#include <cstdint>

namespace stratagem::kernels {

/// `value` rounded to a binary16, ties to even; beyond 65504 + 16 it is infinite.
constexpr std::uint16_t half_bits(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (word >> 16) & 0x8000U, magnitude = word & 0x7FFFFFFFU;
  std::uint32_t result = 0;
  if (magnitude > 0x7F800000U) {
    result = 0x7E00U;  // no number
  } else if (magnitude >= 0x47800000U) {
    result = 0x7C00U;  // 2^16 and more
  } else if (magnitude < 0x38800000U) {
    // Below 2^-14 numbers are multiples of 2^-24, as floats from 1/2 to 1 are: adding rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    result = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
    result = (rounded - 0x38000000U) >> 13;  // another bias of the exponent
  }
  return static_cast<std::uint16_t>(sign | result);
}

constexpr float half_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wider = exponent == 0x1FU ? 0xFFU : exponent + 112U;
  return std::bit_cast<float>(sign | (wider << 23) | (fraction << 13));
}

/// `value` rounded to a bfloat16, the upper half of a float, ties to even.
constexpr std::uint16_t bfloat16_bits(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((word >> 16) | 0x40U);
  return static_cast<std::uint16_t>((word + 0x7FFFU + ((word >> 16) & 1U)) >> 16);
}

constexpr float bfloat16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// fp16: 11 bits of significand, up to 65504. Storage only: arithmetic is that of float.
struct Half {
  constexpr Half() = default;
  constexpr explicit Half(float value) : bits(half_bits(value)) {}
  constexpr operator float() const {
    return half_value(bits);
  }  // NOLINT(google-explicit-constructor)

  std::uint16_t bits = 0;
};

/// bf16: 8 bits of significand, the exponents of float.
struct BFloat16 {
  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(bfloat16_bits(value)) {}
  constexpr operator float() const {  // NOLINT(google-explicit-constructor)
    return bfloat16_value(bits);
  }

  std::uint16_t bits = 0;
};

}  // namespace stratagem::kernels

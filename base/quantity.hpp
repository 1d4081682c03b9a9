// Quantities with a dimension: Seconds, Bytes, Flops and their rates, as types that cannot be mixed
// up.
#pragma once

#include <compare>
#include <cstdint>

namespace stratagem {

/// A number with the dimension bytes^B * flops^F * seconds^S, held in base units (B, FLOP, s).
/// Products and quotients carry their dimension; where all exponents cancel, the result is a
/// double. `Bytes + Seconds` does not compile. Doubles hold every whole number of bytes up to 2^53
/// exactly.
template <int B, int F, int S>
struct Quantity {
  double value = 0;

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(double a, Quantity b) { return {a * b.value}; }
  friend constexpr Quantity operator*(Quantity a, double b) { return {a.value * b}; }
  friend constexpr Quantity operator/(Quantity a, double b) { return {a.value / b}; }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }
};

namespace detail {
template <int B, int F, int S>
constexpr auto collapse(double value) {
  if constexpr (B == 0 && F == 0 && S == 0) {
    return value;
  } else {
    return Quantity<B, F, S>{value};
  }
}
}  // namespace detail

template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr auto operator*(Quantity<B1, F1, S1> a, Quantity<B2, F2, S2> b) {
  return detail::collapse<B1 + B2, F1 + F2, S1 + S2>(a.value * b.value);
}

template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr auto operator/(Quantity<B1, F1, S1> a, Quantity<B2, F2, S2> b) {
  return detail::collapse<B1 - B2, F1 - F2, S1 - S2>(a.value / b.value);
}

using Bytes = Quantity<1, 0, 0>;
using Flops = Quantity<0, 1, 0>;
using Seconds = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, 0, -1>;
using FlopsPerSecond = Quantity<0, 1, -1>;

/// `450_GBps`, `1_GiB`, `2_us`: GB = 1e9 bytes, GiB = 2^30 bytes. Computed in long double, so that
/// `3_us` is the double nearest to 3e-6, which 3 * 1e-6 is not, and equals what "3 us" reads as.
inline namespace literals {
#define STRATAGEM_UNIT(suffix, type, factor)                      \
  constexpr type operator""_##suffix(unsigned long long number) { \
    return {static_cast<double>(number * (factor##L))};           \
  }                                                               \
  constexpr type operator""_##suffix(long double number) {        \
    return {static_cast<double>(number * (factor##L))};           \
  }
STRATAGEM_UNIT(s, Seconds, 1.0)
STRATAGEM_UNIT(ms, Seconds, 1e-3)
STRATAGEM_UNIT(us, Seconds, 1e-6)
STRATAGEM_UNIT(ns, Seconds, 1e-9)
STRATAGEM_UNIT(B, Bytes, 1.0)
STRATAGEM_UNIT(KB, Bytes, 1e3)
STRATAGEM_UNIT(MB, Bytes, 1e6)
STRATAGEM_UNIT(GB, Bytes, 1e9)
STRATAGEM_UNIT(TB, Bytes, 1e12)
STRATAGEM_UNIT(KiB, Bytes, 1024.0)
STRATAGEM_UNIT(MiB, Bytes, 1048576.0)
STRATAGEM_UNIT(GiB, Bytes, 1073741824.0)
STRATAGEM_UNIT(GBps, BytesPerSecond, 1e9)
STRATAGEM_UNIT(TBps, BytesPerSecond, 1e12)
STRATAGEM_UNIT(GFLOP, Flops, 1e9)
STRATAGEM_UNIT(TFLOP, Flops, 1e12)
STRATAGEM_UNIT(TFLOPps, FlopsPerSecond, 1e12)
#undef STRATAGEM_UNIT
}  // namespace literals

}  // namespace stratagem

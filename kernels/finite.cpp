// Tests exponents: those of NaN and infinity are all ones.
#include "kernels/finite.hpp"

#include <bit>
#include <limits>
#include <type_traits>

#include "kernels/half.hpp"

namespace stratagem::kernels {

template <typename T>
bool all_finite(In<T> x) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  using Number = std::conditional_t<sizeof(T) == 2, float, T>;
  constexpr auto infinity = static_cast<T>(std::numeric_limits<Number>::infinity());
  constexpr auto exponent = std::bit_cast<Bits>(infinity);
  bool finite = true;
  for (const T& value : x) finite &= (std::bit_cast<Bits>(value) & exponent) != exponent;
  return finite;
}

template bool all_finite<float>(In<float>);
template bool all_finite<double>(In<double>);
template bool all_finite<Half>(In<Half>);
template bool all_finite<BFloat16>(In<BFloat16>);

}  // namespace stratagem::kernels

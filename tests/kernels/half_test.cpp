// Two-byte numbers against their definition: sign, exponent and fraction, and ties to even.
#include "kernels/half.hpp"

#include <limits>

#include "tests/catch.hpp"

namespace stratagem::kernels::half_test {

namespace {

/// What bits mean, from the formats' definition: (-1)^s 2^(e - bias) 1.f, or 0.f where e = 0.
double meaning(unsigned bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return (bits >> 15) != 0 ? -magnitude : magnitude;
}

/// Every finite number of a format means what it should, is kept by a rounding, and what lies
/// between it and the next goes to the nearer one, the middle to the even one.
template <typename T>
void expect_format(int exponent_bits, int fraction_bits) {
  const unsigned infinity = ((1U << exponent_bits) - 1) << fraction_bits;
  std::size_t wrong = 0;
  for (unsigned bits = 0; bits + 1 < infinity; ++bits) {
    const double here = meaning(bits, exponent_bits, fraction_bits);
    const double next = meaning(bits + 1, exponent_bits, fraction_bits);
    const auto middle = static_cast<float>((here + next) / 2);  // exact: one bit more
    T number;
    number.bits = static_cast<std::uint16_t>(bits);
    wrong += static_cast<double>(static_cast<float>(number)) != here;
    wrong += T(static_cast<float>(here)).bits != bits;
    wrong += T(std::nextafter(middle, 0.0F)).bits != bits;
    wrong += T(middle).bits != bits + bits % 2;
    wrong += T(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits != bits + 1;
    wrong += T(-middle).bits != (T(middle).bits | 0x8000U);
  }
  CHECK(wrong == 0);
}

TEST_CASE("all finite numbers of fp16, and what lies between them") { expect_format<Half>(5, 10); }

TEST_CASE("all finite numbers of bf16, and what lies between them") {
  expect_format<BFloat16>(8, 7);
}

TEST_CASE("beyond the largest: 65520 is the first that fp16 takes for infinite") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(Half(65519.996F) == 65504.0F);
  CHECK(Half(65520.0F) == infinity);
  CHECK(Half(-1e30F) == -infinity);
  CHECK(Half(infinity) == infinity);
  CHECK(BFloat16(infinity) == infinity);
  CHECK(BFloat16(std::numeric_limits<float>::max()) == infinity);
}

TEST_CASE("no number stays none") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(static_cast<float>(Half(none))));
  CHECK(std::isnan(static_cast<float>(BFloat16(none))));
  CHECK(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7F800001U)))));
}

}  // namespace

}  // namespace stratagem::kernels::half_test

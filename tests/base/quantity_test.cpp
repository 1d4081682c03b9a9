// Quantities: what may be added, what products and quotients become, what the literals mean.
#include "base/quantity.hpp"

#include <type_traits>

#include "tests/catch.hpp"

using namespace stratagem;

namespace {

template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <typename A, typename B>
concept Assignable = requires(A a, B b) {
  a = b;
};

static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>, "a size and a time have no sum");
static_assert(!Addable<Bytes, double>, "a bare number has no unit");
static_assert(!Addable<BytesPerSecond, FlopsPerSecond>);
static_assert(!Comparable<Seconds, Bytes>);
static_assert(!Assignable<Seconds, double>);
static_assert(std::is_same_v<decltype(Bytes{} / BytesPerSecond{}), Seconds>);
static_assert(std::is_same_v<decltype(Flops{} / Seconds{}), FlopsPerSecond>);
static_assert(std::is_same_v<decltype(Seconds{} * FlopsPerSecond{}), Flops>);
static_assert(std::is_same_v<decltype(Seconds{} / Seconds{}), double>, "no dimension is left");

}  // namespace

TEST_CASE("a size over a bandwidth is a time") {
  STATIC_REQUIRE(900_GB / 450_GBps == 2_s);
  STATIC_REQUIRE(3_TFLOP / 1_TFLOPps == 3_s);
  STATIC_REQUIRE(2_s * 450_GBps == 900_GB);
}

TEST_CASE("quantities of one dimension add, scale and compare as numbers do") {
  STATIC_REQUIRE(1_s + 500_ms == 1.5_s);
  STATIC_REQUIRE(1_s - 250_ms == 750_ms);
  STATIC_REQUIRE(2 * 3_MB == 6_MB);
  STATIC_REQUIRE(3_MB / 2 == 1.5_MB);
  STATIC_REQUIRE(6_GB / 3_GB == 2.0);
  STATIC_REQUIRE(1_GB < 1_GiB);
  Seconds sum;
  sum += 2_s;
  sum -= 500_ms;
  CHECK(sum == 1.5_s);
  CHECK(Bytes{} == 0_B);
}

TEST_CASE("GB are powers of 1000 and GiB are powers of 1024") {
  STATIC_REQUIRE((1_KB).value == 1e3);
  STATIC_REQUIRE((1_TB).value == 1e12);
  STATIC_REQUIRE((1_KiB).value == 1024);
  STATIC_REQUIRE((1_GiB).value == 1024.0 * 1024.0 * 1024.0);
}

TEST_CASE("a literal is the double nearest to the written number") {
  CHECK((3_us).value == 3e-6);  // 3 * 1e-6 is one unit in the last place above
  CHECK((7_ns).value == 7e-9);
  CHECK((12.5_us).value == 12.5e-6);
  CHECK((989.4_TFLOPps).value == 989.4e12);
}

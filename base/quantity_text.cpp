// Quantities to and from text: one table of units per dimension serves both directions.
#include "base/quantity_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <system_error>

namespace stratagem {
namespace {

/// A unit is multiply / divide base units: 1 us = 1 / 1e6 s. Both factors are exact doubles, so
/// that "3 us" reads as the double nearest to 3e-6, which 3 * 1e-6 is not.
struct Unit {
  std::string_view name;
  double multiply = 1;
  double divide = 1;
  bool printed = true;
};

// Ascending; the base unit is the one with both factors 1.
constexpr std::array time_units{
    Unit{"ps", 1, 1e12}, Unit{"ns", 1, 1e9}, Unit{"us", 1, 1e6}, Unit{"ms", 1, 1e3}, Unit{"s"},
};
constexpr std::array byte_units{
    Unit{"B"},
    Unit{"KB", 1e3},
    Unit{"MB", 1e6},
    Unit{"GB", 1e9},
    Unit{"TB", 1e12},
    Unit{"KiB", 1024.0, 1, false},
    Unit{"MiB", 1048576.0, 1, false},
    Unit{"GiB", 1073741824.0, 1, false},
    Unit{"TiB", 1099511627776.0, 1, false},
};
constexpr std::array byte_rate_units{
    Unit{"B/s"},
    Unit{"KB/s", 1e3},
    Unit{"MB/s", 1e6},
    Unit{"GB/s", 1e9},
    Unit{"TB/s", 1e12},
    Unit{"KiB/s", 1024.0, 1, false},
    Unit{"MiB/s", 1048576.0, 1, false},
    Unit{"GiB/s", 1073741824.0, 1, false},
    Unit{"TiB/s", 1099511627776.0, 1, false},
    Unit{"Mb/s", 1e6, 8, false},
    Unit{"Gb/s", 1e9, 8, false},
};
constexpr std::array flop_units{
    Unit{"FLOP"},        Unit{"KFLOP", 1e3},  Unit{"MFLOP", 1e6},  Unit{"GFLOP", 1e9},
    Unit{"TFLOP", 1e12}, Unit{"PFLOP", 1e15}, Unit{"EFLOP", 1e18},
};
constexpr std::array flop_rate_units{
    Unit{"FLOP/s"},        Unit{"KFLOP/s", 1e3},  Unit{"MFLOP/s", 1e6},  Unit{"GFLOP/s", 1e9},
    Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}, Unit{"EFLOP/s", 1e18},
};

/// What no machine goes beyond, in base units; beyond it sums and quotients would.
struct Bounds {
  double least, most;
  std::string_view expected;
};

template <typename Q>
struct Dimension;

template <>
struct Dimension<Seconds> {
  static constexpr std::span<const Unit> units = time_units;
  static constexpr std::string_view expected = "a time such as \"12.5 us\" (s, ms, us, ns, ps)";
  static constexpr Bounds bounds{0, 1e6, "a time of at most 1e6 s"};
};
template <>
struct Dimension<Bytes> {
  static constexpr std::span<const Unit> units = byte_units;
  static constexpr std::string_view expected =
      "a size such as \"32 GiB\" (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)";
  static constexpr Bounds bounds{0, 1e18, "a size of at most 1e6 TB"};
};
template <>
struct Dimension<BytesPerSecond> {
  static constexpr std::span<const Unit> units = byte_rate_units;
  static constexpr std::string_view expected =
      "a bandwidth such as \"450 GB/s\" (B/s, KB/s ... TiB/s, or bits: Mb/s, Gb/s)";
  static constexpr Bounds bounds{1, 1e21, "a bandwidth of 0, or of 1 B/s to 1e9 TB/s"};
};
template <>
struct Dimension<Flops> {
  static constexpr std::span<const Unit> units = flop_units;
  static constexpr std::string_view expected =
      "an amount of work such as \"1.5 TFLOP\" (FLOP, KFLOP ... EFLOP)";
  static constexpr Bounds bounds{0, 1e30, "an amount of work of at most 1e12 EFLOP"};
};
template <>
struct Dimension<FlopsPerSecond> {
  static constexpr std::span<const Unit> units = flop_rate_units;
  static constexpr std::string_view expected =
      "a speed such as \"125 TFLOP/s\" (FLOP/s, KFLOP/s ... EFLOP/s)";
  static constexpr Bounds bounds{1, 1e24, "a speed of 0, or of 1 FLOP/s to 1e6 EFLOP/s"};
};

constexpr int significant_digits = 4;

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const auto result = std::abs(value) >= 1e4
                          ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::fixed, 0)
                          : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::general, significant_digits);
  // A number too long for the buffer is beyond any unit that we print.
  if (result.ec != std::errc{}) return value < 0 ? "-inf" : "inf";
  return {buffer.data(), result.ptr};
}

/// `value` with only the digits that will be printed, so that 999.99 us becomes 1 ms.
double rounded(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific, significant_digits - 1);
  double result = value;
  std::from_chars(buffer.data(), end.ptr, result);
  return result;
}

std::string text_of(double value, std::span<const Unit> units) {
  const double magnitude = std::abs(rounded(value));
  const Unit* chosen = &units.front();  // which is printed in every table
  for (const Unit& unit : units) {
    if (!unit.printed) continue;
    const bool is_base = unit.multiply == 1 && unit.divide == 1;
    const bool fits = magnitude > 0 ? magnitude * unit.divide / unit.multiply >= 1 : is_base;
    if (fits) chosen = &unit;
  }
  return number_text(value * chosen->divide / chosen->multiply) + " " + std::string(chosen->name);
}

}  // namespace

template <typename Q>
std::optional<Q> parse_quantity(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  for (const Unit& unit : Dimension<Q>::units) {
    if (unit.name != text) continue;
    const double value = number * unit.multiply / unit.divide;
    if (!std::isfinite(value)) return std::nullopt;
    return Q{value};
  }
  return std::nullopt;
}

template <typename Q>
std::string_view expected_quantity() {
  return Dimension<Q>::expected;
}

template <typename Q>
std::optional<std::string_view> beyond_bounds(Q value) {
  constexpr Bounds bounds = Dimension<Q>::bounds;
  const double size = std::abs(value.value);
  if (size == 0 || (size >= bounds.least && size <= bounds.most)) return std::nullopt;
  return bounds.expected;
}

#define STRATAGEM_DIMENSION(Q)                                   \
  template std::optional<Q> parse_quantity<Q>(std::string_view); \
  template std::string_view expected_quantity<Q>();              \
  template std::optional<std::string_view> beyond_bounds(Q);     \
  std::string to_text(Q value) { return text_of(value.value, Dimension<Q>::units); }
STRATAGEM_DIMENSION(Seconds)
STRATAGEM_DIMENSION(Bytes)
STRATAGEM_DIMENSION(Flops)
STRATAGEM_DIMENSION(BytesPerSecond)
STRATAGEM_DIMENSION(FlopsPerSecond)
#undef STRATAGEM_DIMENSION

}  // namespace stratagem

// Quantities as people and JSON write them: "450 GB/s", "12.5 us", "32 GiB", "125 TFLOP/s".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/quantity.hpp"

namespace stratagem {

/// Parses a number, blanks and a unit of the wanted dimension; nothing else may follow.
/// The number may be negative; JsonReader::quantity refuses that.
/// Time: s ms us ns ps. Bytes: B, KB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024).
/// Bytes/s: a byte unit and "/s"; network rates in bits: Mb/s, Gb/s. Flops: FLOP KFLOP MFLOP GFLOP
/// TFLOP PFLOP EFLOP, and the same with "/s". Returns nullopt if the text is not of that form.
template <typename Q>
std::optional<Q> parse_quantity(std::string_view text);

/// The same units, four significant digits, the largest unit that leaves a value >= 1:
/// "1.685 s", "31.75 GB" (decimal bytes), "39.01 TFLOP/s"; trailing zeros are left out: "450 GB/s".
std::string to_text(Seconds);
std::string to_text(Bytes);
std::string to_text(Flops);
std::string to_text(BytesPerSecond);
std::string to_text(FlopsPerSecond);

/// The units that parse_quantity<Q> accepts, with an example, for error messages: `a time such as
/// "12.5 us"`.
template <typename Q>
std::string_view expected_quantity();

/// The bound that no machine exceeds, in words, if this value exceeds it: `a time of at most 1e6
/// s`. Constants must keep within these bounds, so that results computed from them do not overflow.
template <typename Q>
std::optional<std::string_view> beyond_bounds(Q value);

}  // namespace stratagem

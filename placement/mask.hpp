// Which part of a logical tensor an operator sees: a range of every dimension, and which of n
// partial values.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace stratagem::placement {

/// Half-open range of indices of one dimension of the whole tensor.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend auto operator<=>(const Range&, const Range&) = default;
};

/// "The i-th of n values that combine into the full one" (by sum, or as the tensor's producer
/// says). {0, 1}: full.
struct ValuePart {
  std::int64_t index = 0;
  std::int64_t count = 1;
  friend auto operator<=>(const ValuePart&, const ValuePart&) = default;
};

/// The mask of a vTensor: index map and value map. A data dependency exists where both maps
/// overlap.
struct Mask {
  std::vector<Range> ranges;
  ValuePart value;
  friend auto operator<=>(const Mask&, const Mask&) = default;
};

/// The mask of the whole tensor.
Mask whole(const std::vector<std::int64_t>& shape);

/// Part `i` of `n` equal parts of dimension `dim`. Expects n to divide the range.
Mask split(const Mask&, std::size_t dim, std::int64_t i, std::int64_t n);
/// Part `i` of `n` of dimension `dim`, as equal as whole multiples of `unit` elements allow: the
/// first parts have one unit more than the others. Expects n units at least.
Mask split_unevenly(const Mask&, std::size_t dim, std::int64_t i, std::int64_t n,
                    std::int64_t unit = 1);
/// The i-th of n partial values of what `mask` sees: (a, b) becomes (a*n + i, b*n).
Mask split_value(const Mask&, std::int64_t i, std::int64_t n);

/// Do two masks of one tensor share an element of which they see a common part of the value?
bool overlap(const Mask&, const Mask&);

}  // namespace stratagem::placement

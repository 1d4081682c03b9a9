// What a mask sees, spelled out: every element together with every smallest part of its value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "placement/mask.hpp"

namespace stratagem::placement {

/// Ascending numbers, one for each element and part of its value: indices and part as digits to the
/// base 64.
using Seen = std::vector<std::int64_t>;

/// Values are cut into `parts` parts; (i, n) is those from i/n to (i+1)/n. Expects n to divide
/// `parts`.
inline Seen seen_by(const Mask& mask, std::int64_t parts) {
  Seen seen{0};
  const auto append = [&](std::int64_t begin, std::int64_t end) {
    Seen longer;
    for (const std::int64_t prefix : seen) {
      for (std::int64_t digit = begin; digit < end; ++digit) longer.push_back(prefix * 64 + digit);
    }
    seen = longer;
  };
  for (const Range& range : mask.ranges) append(range.begin, range.end);
  const std::int64_t share = parts / mask.value.count;
  append(mask.value.index * share, (mask.value.index + 1) * share);
  return seen;
}

inline bool contains(const Seen& all, const Seen& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}
inline Seen either(const Seen& a, const Seen& b) {
  Seen result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}
inline Seen common(const Seen& a, const Seen& b) {
  Seen result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

}  // namespace stratagem::placement

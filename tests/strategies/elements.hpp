// What a mask sees, spelled out: every element together with every smallest part of its value.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "strategies/mask.hpp"

namespace stratagem::strategies {

/// Indices along every dimension, then a part of the value.
using Seen = std::set<std::vector<std::int64_t>>;

/// Values are cut into `parts` parts; (i, n) is those from i/n to (i+1)/n. Expects n to divide
/// `parts`.
inline Seen seen_by(const Mask& mask, std::int64_t parts) {
  Seen seen;
  std::vector<std::int64_t> index;
  for (const Range& range : mask.ranges) {
    if (range.begin >= range.end) return seen;
    index.push_back(range.begin);
  }
  const std::int64_t share = parts / mask.value.count;
  while (true) {
    for (std::int64_t part = mask.value.index * share; part < (mask.value.index + 1) * share;
         ++part) {
      std::vector<std::int64_t> element = index;
      element.push_back(part);
      seen.insert(element);
    }
    std::size_t d = 0;
    for (; d < index.size(); ++d) {
      if (++index[d] < mask.ranges[d].end) break;
      index[d] = mask.ranges[d].begin;
    }
    if (d == index.size()) return seen;
  }
}

inline bool contains(const Seen& all, const Seen& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace stratagem::strategies

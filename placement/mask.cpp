// Arithmetic of masks.
#include "placement/mask.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::placement {
namespace {

/// Partial values as intervals of the common denominator.
bool values_overlap(const ValuePart& a, const ValuePart& b) {
  return a.index * b.count < (b.index + 1) * a.count && b.index * a.count < (a.index + 1) * b.count;
}

}  // namespace

Mask whole(const std::vector<std::int64_t>& shape) {
  Mask mask;
  for (const std::int64_t size : shape) mask.ranges.push_back({0, size});
  return mask;
}

Mask split(const Mask& mask, std::size_t dim, std::int64_t i, std::int64_t n) {
  const Range range = mask.ranges[dim];
  const std::int64_t size = range.end - range.begin;
  expects(n > 0 && size % n == 0, "a dimension is divided into equal parts");
  Mask part = mask;
  part.ranges[dim] = {range.begin + i * (size / n), range.begin + (i + 1) * (size / n)};
  return part;
}

Mask split_unevenly(const Mask& mask, std::size_t dim, std::int64_t i, std::int64_t n,
                    std::int64_t unit) {
  const Range range = mask.ranges[dim];
  const std::int64_t units = (range.end - range.begin) / unit;
  expects(n > 0 && unit > 0 && units >= n && range.begin + units * unit == range.end,
          "a dimension is divided into parts of one unit or more");
  const auto begin = [&](std::int64_t part) {
    return range.begin + (part * (units / n) + std::min(part, units % n)) * unit;
  };
  Mask part = mask;
  part.ranges[dim] = {begin(i), begin(i + 1)};
  return part;
}

Mask split_value(const Mask& mask, std::int64_t i, std::int64_t n) {
  Mask part = mask;
  part.value = {mask.value.index * n + i, mask.value.count * n};
  return part;
}

bool overlap(const Mask& a, const Mask& b) {
  for (std::size_t d = 0; d < a.ranges.size(); ++d) {
    if (std::min(a.ranges[d].end, b.ranges[d].end) <=
        std::max(a.ranges[d].begin, b.ranges[d].begin))
      return false;
  }
  return values_overlap(a.value, b.value);
}

}  // namespace stratagem::placement

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

std::optional<Mask> intersection(const Mask& a, const Mask& b) {
  if (!overlap(a, b)) return std::nullopt;
  Mask common = a;
  for (std::size_t d = 0; d < a.ranges.size(); ++d) {
    common.ranges[d] = {std::max(a.ranges[d].begin, b.ranges[d].begin),
                        std::min(a.ranges[d].end, b.ranges[d].end)};
  }
  if (a.value == b.value || b.value.count == 1) return common;
  if (a.value.count != 1) return std::nullopt;
  common.value = b.value;
  return common;
}

std::optional<Mask> concatenation(const Mask& a, const Mask& b) {
  if (a.value != b.value) return std::nullopt;
  std::optional<std::size_t> differs;
  for (std::size_t d = 0; d < a.ranges.size(); ++d) {
    if (a.ranges[d] == b.ranges[d]) continue;
    if (differs) return std::nullopt;
    differs = d;
  }
  if (!differs) return std::nullopt;
  const Range first = std::min(a.ranges[*differs], b.ranges[*differs]);
  const Range second = std::max(a.ranges[*differs], b.ranges[*differs]);
  if (first.end != second.begin) return std::nullopt;
  Mask joined = a;
  joined.ranges[*differs] = {first.begin, second.end};
  return joined;
}

std::optional<Mask> accumulation(const std::vector<Mask>& masks) {
  if (masks.empty()) return std::nullopt;
  std::vector<Mask> sorted = masks;
  std::ranges::sort(sorted, {}, [](const Mask& mask) { return mask.value.index; });
  const auto k = static_cast<std::int64_t>(sorted.size());
  const ValuePart first = sorted.front().value;
  if (first.index % k != 0 || first.count % k != 0) return std::nullopt;
  for (std::int64_t i = 0; i < k; ++i) {
    const Mask& mask = sorted[i];
    if (mask.ranges != sorted.front().ranges ||
        mask.value != ValuePart{first.index + i, first.count}) {
      return std::nullopt;
    }
  }
  Mask full = sorted.front();
  full.value = {first.index / k, first.count / k};
  return full;
}

}  // namespace stratagem::placement

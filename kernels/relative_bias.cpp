// Looks biases up for pairs of positions, and adds their gradients up.
#include "kernels/relative_bias.hpp"

#include <algorithm>
#include <cmath>

namespace stratagem::kernels {
namespace {

constexpr double farthest = 128;

/// Of a distance >= 0 among the buckets of one direction.
std::int64_t bucket_of_distance(std::int64_t count, std::int64_t distance) {
  const std::int64_t exact = count / 2;
  if (distance < exact) return distance;
  const auto start = static_cast<double>(exact);
  const double share =
      std::log2(static_cast<double>(distance) / start) / std::log2(farthest / start);
  const auto beyond = static_cast<std::int64_t>(share * static_cast<double>(count - exact));
  return std::min(count - 1, exact + beyond);
}

/// Calls `run(place in table, place in pairs)` for every pair of every head.
template <typename Run>
void for_each_pair(const Pairs& pairs, const DistanceBuckets& buckets, const Run& run) {
  for (std::int64_t q = 0; q < pairs.queries; ++q) {
    for (std::int64_t k = 0; k < pairs.keys; ++k) {
      const std::int64_t bucket = bucket_of(buckets, pairs.first_query + q, pairs.first_key + k);
      for (std::int64_t head = 0; head < pairs.heads; ++head)
        run(bucket * pairs.heads + head, (head * pairs.queries + q) * pairs.keys + k);
    }
  }
}

}  // namespace

std::int64_t bucket_of(const DistanceBuckets& buckets, std::int64_t query, std::int64_t key) {
  expects(buckets.count > 0 && buckets.count % 4 == 0 && buckets.count / 2 < farthest,
          "buckets of distances come in fours, up to 252");
  const std::int64_t distance = key - query;
  if (!buckets.both_directions)
    return bucket_of_distance(buckets.count, std::max<std::int64_t>(0, -distance));
  const std::int64_t half = buckets.count / 2;
  return (distance > 0 ? half : 0) + bucket_of_distance(half, std::abs(distance));
}

template <typename T>
void relative_bias(const Pairs& pairs, const DistanceBuckets& buckets, In<T> table, Out<T> y) {
  expect_size(buckets.count * pairs.heads, table);
  expect_size(pairs.heads * pairs.queries * pairs.keys, y);
  for_each_pair(pairs, buckets,
                [&](std::int64_t entry, std::int64_t pair) { y[pair] = table[entry]; });
}

template <typename T>
void relative_bias_gradient(const Pairs& pairs, const DistanceBuckets& buckets, In<T> dy,
                            Out<T> dtable) {
  expect_size(buckets.count * pairs.heads, dtable);
  expect_size(pairs.heads * pairs.queries * pairs.keys, dy);
  for_each_pair(pairs, buckets,
                [&](std::int64_t entry, std::int64_t pair) { dtable[entry] += dy[pair]; });
}

#define INSTANTIATE(T)                                                                 \
  template void relative_bias<T>(const Pairs&, const DistanceBuckets&, In<T>, Out<T>); \
  template void relative_bias_gradient<T>(const Pairs&, const DistanceBuckets&, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

// Biases of attention scores by head and by how far a key is from its query.
#pragma once

#include <cstdint>

#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// Distances key - query fall into `count` buckets. In both directions half of them are for keys at
/// or before the query, half for keys after it; looking back only, all are for those before, and
/// keys after the query are in bucket 0. Of the n buckets of a direction the first n / 2 have one
/// distance each, 0, 1, ... n/2 - 1; the others grow as powers up to 128, the last one has all
/// beyond. Raffel et al., arXiv:1910.10683, section 2.1, with the borders of its published code.
struct DistanceBuckets {
  std::int64_t count = 32;  ///< a multiple of 4
  bool both_directions = true;
};

/// From 0 to count - 1.
std::int64_t bucket_of(const DistanceBuckets& buckets, std::int64_t query, std::int64_t key);

/// Pairs of places: heads one after another, each (queries, keys), of which the queries begin at
/// place `first_query`, the keys at `first_key`.
struct Pairs {
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t first_query = 0;
  std::int64_t first_key = 0;
};

/// y (heads, queries, keys) = the row of `table` (buckets, heads) of each pair's bucket.
template <typename T>
void relative_bias(const Pairs& pairs, const DistanceBuckets& buckets, In<T> table, Out<T> y);

/// Adds to `dtable` (buckets, heads) the gradients dy of all pairs of each bucket.
template <typename T>
void relative_bias_gradient(const Pairs& pairs, const DistanceBuckets& buckets, In<T> dy,
                            Out<T> dtable);

}  // namespace stratagem::kernels

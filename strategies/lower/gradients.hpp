// Which weight gradients are partial sums, over which devices, and in which buckets they are reduced.
#pragma once

#include <map>
#include <vector>

#include "strategies/lower/block.hpp"

namespace stratagem::strategies {

/// One all-reduce of gradients, possible once the backward block of segment `after` has run.
struct Bucket {
  int after = 0;
  std::vector<int> axes;  ///< of the stage's grid
  std::vector<model::TensorId> gradients;
  std::vector<Bytes> sizes;
  Bytes bytes;
};

/// Buckets of one stage in the order in which its backward pass completes them. A gradient is reduced along the
/// axes on which it is partial and its parameter is not divided. `backward` gives the lowered blocks by segment.
std::vector<Bucket> gradient_buckets(const Plan& plan, const Grid& grid, const std::vector<int>& segments,
                                     const std::vector<SegmentFacts>& facts,
                                     const std::map<int, const LoweredBlock*>& forward,
                                     const std::map<int, const LoweredBlock*>& backward);

/// By parameter that operators of these segments read: the layout in which they see it. Throws InputError where
/// two segments see different parts.
std::map<model::TensorId, Layout> parameter_layouts(const Plan& plan, const std::vector<int>& segments,
                                                    const std::vector<SegmentFacts>& facts,
                                                    const std::map<int, const LoweredBlock*>& forward);

}  // namespace stratagem::strategies

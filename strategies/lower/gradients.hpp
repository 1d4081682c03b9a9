// Which weight gradients are partial sums, over which devices, and in which buckets they are
// reduced.
#pragma once

#include <map>
#include <vector>

#include "strategies/lower/blocks.hpp"
#include "strategies/lower/stages.hpp"

namespace stratagem::strategies {

using ParameterLayouts = std::map<model::TensorId, Layout>;

/// The layout in which the operators of a stage see every parameter that they read. Throws
/// InputError where two segments see different parts.
ParameterLayouts parameter_layouts(const Plan& plan, const Stages& stages, const Blocks& blocks,
                                   int stage);

/// One all-reduce of gradients, possible once the backward block of segment `after` has run.
struct Bucket {
  int after = 0;
  std::vector<int> axes;  ///< of the stage's grid
  std::vector<model::TensorId> gradients;
  std::vector<Bytes> sizes;
  Bytes bytes;
};

/// Buckets of one stage in the order in which its backward pass completes them. A gradient is
/// reduced along the axes on which it is partial and its parameter is not divided.
std::vector<Bucket> gradient_buckets(const Plan& plan, const Stages& stages, const Blocks& blocks,
                                     int stage);

}  // namespace stratagem::strategies

// Flows that share links: rates are max-min fair, found by progressive filling.
#pragma once

#include <cstdint>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::sim {

/// A class of flows that load the links in the same way: flows of one class always have one rate.
using FlowClass = int;

/// `count` flows of class `flow`, of which each puts `load` bytes on a link per byte of its volume.
struct LinkUse {
  FlowClass flow = 0;
  double load = 0;
  std::int64_t count = 0;
};

/// Max-min fair rates. Every flow class f has a weight (the rate that it reaches alone); the fill
/// level t rises from 0 and rate_f = weight_f * t for every flow not yet stopped; a flow stops when
/// one of its links is full or at its own weight (t = 1). On a full link every stopped flow that
/// set it off has the largest t.
///
/// A link is given as the list of its uses in ascending (class, load), so that equal links compute
/// equal bits however many of them there are: folded and unfolded runs agree.
class FairShare {
 public:
  /// `capacities[l]` of link l; `uses[l]` its possible uses (`count` ignored); `weights[f]` of
  /// class f.
  FairShare(std::vector<BytesPerSecond> capacities, std::vector<std::vector<LinkUse>> uses,
            std::vector<BytesPerSecond> weights);

  /// Rates by class when `active[l][u]` flows of uses[l][u] are there on link l. Classes without
  /// active flows have rate 0.
  [[nodiscard]] std::vector<BytesPerSecond> rates(
      const std::vector<std::vector<std::int64_t>>& active) const;

 private:
  std::vector<BytesPerSecond> capacities_;
  std::vector<std::vector<LinkUse>> uses_;
  std::vector<BytesPerSecond> weights_;
};

}  // namespace stratagem::sim

// Flows that share links: rates are max-min fair, found by progressive filling.
#pragma once

#include <cstdint>
#include <utility>
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

/// Max-min fair rates of a changing set of flows. Every flow class f has a weight (the rate that it
/// reaches alone); the fill level t rises from 0 and rate_f = weight_f * t for every flow not yet
/// stopped; a flow stops when one of its links is full or at its own weight (t = 1). On a full link
/// every stopped flow that set it off has the largest t. Source: Bertsekas and Gallager, Data
/// Networks, section 6.5.2.
///
/// Only flows that share a link with one that began or ended, or with one that does, and so on, can
/// have another rate than before; only these are filled anew: links in the order in which they
/// become full, so that the cost is linear in their uses, and logarithmic in the links.
///
/// A link is given as the list of its uses in ascending (class, load), and its sums are taken in
/// that order, so that equal links compute equal bits however many of them there are: folded and
/// unfolded runs agree.
class FairShare {
 public:
  /// `capacities[l]` of link l; `uses[l]` its possible uses (`count` ignored); `weights[f]` of
  /// class f. No flow is there yet.
  FairShare(std::vector<BytesPerSecond> capacities, std::vector<std::vector<LinkUse>> uses,
            std::vector<BytesPerSecond> weights);

  /// `change` more flows of `uses[link][use]`, fewer if negative.
  void add(int link, int use, std::int64_t change);

  /// Rates by class. Classes without active flows have rate 0. Valid until the next call.
  const std::vector<BytesPerSecond>& rates();

 private:
  struct Place {
    int link = 0;
    int use = 0;
  };

  void reach();
  void visit(int link);
  void visit_class(FlowClass flow);
  [[nodiscard]] double full_at(int link, double level) const;
  void stop_on(int link, double level);

  std::vector<BytesPerSecond> capacities_;
  std::vector<std::vector<LinkUse>> uses_;
  std::vector<BytesPerSecond> weights_;
  std::vector<std::vector<std::int64_t>> active_;  ///< flows, by link and use
  std::vector<std::vector<int>> present_;          ///< by link: uses with flows, ascending
  std::vector<std::vector<Place>> places_;         ///< by class: all of its uses
  std::vector<BytesPerSecond> rates_;

  std::vector<std::int64_t> uses_of_;  ///< by class: flows on links, all together
  std::vector<Place> changed_;
  std::vector<int> links_;    ///< that the changes reach
  std::vector<int> classes_;  ///< the same
  std::vector<bool> is_reached_link_;
  std::vector<bool> is_rising_;  ///< by class: reached, and not yet stopped
  std::vector<bool> is_reached_;
  std::vector<bool> is_stale_;  ///< by link: a flow has stopped since its level was found
};

}  // namespace stratagem::sim

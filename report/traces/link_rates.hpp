// What crosses a GPU's links in time.
#pragma once

#include <string>
#include <vector>

#include "cost/collectives.hpp"
#include "program/program.hpp"
#include "sim/timeline.hpp"

namespace stratagem::report {

/// Rates of a GPU's links in the round that traces show.
struct LinkRates {
  /// "NVLink out": away from the GPU, all of its links of the kind together. Of the network, the
  /// ports of the adapters nearest to it, with what other GPUs of the server send through them.
  std::vector<std::string> links;
  struct Step {
    sim::Instant when;
    std::vector<BytesPerSecond> rates;  ///< by link, from then on
  };
  std::vector<Step> steps;  ///< in the order of time, each instant once
};

/// Of a device. What a collective puts on a link is spread evenly over its whole time, latency
/// included. Its integral is what the link carries in the round, but at an instant it may be more
/// than the link's bandwidth where collectives overlap. Links that carry nothing are left out.
/// Rank r of the program is GPU r of the cluster.
LinkRates link_rates(const program::Program& program, const sim::Timeline& timeline,
                     cost::Collectives& collectives, int device);

}  // namespace stratagem::report

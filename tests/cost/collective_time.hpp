// How long a collective takes that is alone on its links: a closed form.
#pragma once

#include <algorithm>

#include "cost/ring.hpp"

namespace stratagem::cost {

/// t = latency + max(payload / limit, max over links of payload * load / usable bandwidth); 0 for
/// one rank.
inline Seconds collective_time(const Route& route, Bytes payload, const topology::Cluster& cluster,
                               const CollectiveConstants& constants) {
  Seconds slowest = payload / route.limit;
  for (const LinkLoad& load : route.loads) {
    const BytesPerSecond usable =
        usable_bandwidth(cluster.links()[load.direction.link], constants, load.direction.forward);
    slowest = std::max(slowest, payload * load.load / usable);
  }
  return route.latency + slowest;
}

}  // namespace stratagem::cost

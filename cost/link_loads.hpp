// Sums the bytes that each link carries, route by route.
#pragma once

#include <map>
#include <vector>

#include "topology/cluster.hpp"

namespace stratagem::cost {

/// Bytes that one direction of a link carries per byte of payload.
struct LinkLoad {
  topology::Direction direction;
  double load = 0;
};

/// Bytes that each direction of a link carries per byte of payload.
class LinkLoads {
 public:
  /// `amount` more along a route.
  void add(const std::vector<topology::Share>& route, double amount) {
    for (const topology::Share& share : route) loads_[share.direction] += amount * share.share;
  }
  void add(topology::Direction direction, double amount) { loads_[direction] += amount; }

  /// In ascending directions.
  [[nodiscard]] std::vector<LinkLoad> list() const {
    std::vector<LinkLoad> result;
    for (const auto& [direction, load] : loads_) result.push_back({direction, load});
    return result;
  }

 private:
  std::map<topology::Direction, double> loads_;
};

}  // namespace stratagem::cost

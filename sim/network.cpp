// Progressive filling over classes of flows.
#include "sim/network.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace stratagem::sim {

FairShare::FairShare(std::vector<BytesPerSecond> capacities, std::vector<std::vector<LinkUse>> uses,
                     std::vector<BytesPerSecond> weights)
    : capacities_(std::move(capacities)), uses_(std::move(uses)), weights_(std::move(weights)) {}

std::vector<BytesPerSecond> FairShare::rates(const std::vector<std::vector<std::int64_t>>& active) const {
  constexpr double full = std::numeric_limits<double>::infinity();
  std::vector<BytesPerSecond> rates(weights_.size());
  std::vector<bool> stopped(weights_.size(), false);
  std::vector<double> levels(capacities_.size());
  double level = 0;
  while (level < 1) {
    double lowest = 1;
    for (std::size_t link = 0; link < capacities_.size(); ++link) {
      BytesPerSecond taken;
      BytesPerSecond rising;
      for (std::size_t u = 0; u < uses_[link].size(); ++u) {
        const LinkUse& use = uses_[link][u];
        const double loads = static_cast<double>(active[link][u]) * use.load;
        (stopped[use.flow] ? taken : rising) += loads * (stopped[use.flow] ? rates[use.flow] : weights_[use.flow]);
      }
      levels[link] = rising.value > 0 ? std::max(level, (capacities_[link] - taken) / rising) : full;
      lowest = std::min(lowest, levels[link]);
    }
    level = lowest;
    for (std::size_t link = 0; link < capacities_.size(); ++link) {
      for (std::size_t u = 0; u < uses_[link].size(); ++u) {
        const FlowClass flow = uses_[link][u].flow;
        if (active[link][u] == 0 || stopped[flow] || (level < 1 && levels[link] > level)) continue;
        stopped[flow] = true;
        rates[flow] = weights_[flow] * level;
      }
    }
  }
  return rates;
}

}  // namespace stratagem::sim

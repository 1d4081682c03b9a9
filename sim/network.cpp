// Progressive filling over classes of flows.
#include "sim/network.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace stratagem::sim {

FairShare::FairShare(std::vector<BytesPerSecond> capacities, std::vector<std::vector<LinkUse>> uses,
                     std::vector<BytesPerSecond> weights)
    : capacities_(std::move(capacities)), uses_(std::move(uses)), weights_(std::move(weights)) {}

std::vector<BytesPerSecond> FairShare::rates(
    const std::vector<std::vector<std::int64_t>>& active) const {
  constexpr double idle = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> links;  // those that flows still rise on
  for (std::size_t link = 0; link < capacities_.size(); ++link) {
    if (std::ranges::any_of(active[link], [](std::int64_t count) { return count > 0; }))
      links.push_back(link);
  }
  std::vector<BytesPerSecond> rates(weights_.size());
  std::vector<bool> stopped(weights_.size(), false);
  std::vector<double> levels(capacities_.size());
  for (double level = 0; !links.empty();) {
    double lowest = 1;
    for (const std::size_t link : links) {
      BytesPerSecond taken;
      BytesPerSecond rising;
      for (std::size_t u = 0; u < uses_[link].size(); ++u) {
        const LinkUse& use = uses_[link][u];
        const double loads = static_cast<double>(active[link][u]) * use.load;
        (stopped[use.flow] ? taken : rising) +=
            loads * (stopped[use.flow] ? rates[use.flow] : weights_[use.flow]);
      }
      levels[link] = idle;
      if (rising.value > 0) levels[link] = std::max(level, (capacities_[link] - taken) / rising);
      lowest = std::min(lowest, levels[link]);
    }
    level = lowest;
    for (const std::size_t link : links) {
      if (level < 1 && levels[link] > level) continue;
      for (std::size_t u = 0; u < uses_[link].size(); ++u) {
        const FlowClass flow = uses_[link][u].flow;
        if (active[link][u] == 0 || stopped[flow]) continue;
        stopped[flow] = true;
        rates[flow] = weights_[flow] * level;
      }
    }
    std::erase_if(links, [&](std::size_t link) {
      return level == 1 || levels[link] <= level || levels[link] == idle;
    });
  }
  return rates;
}

}  // namespace stratagem::sim

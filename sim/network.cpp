// Progressive filling over classes of flows, of what changes reach alone.
#include "sim/network.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace stratagem::sim {
namespace {

constexpr double never_full = std::numeric_limits<double>::infinity();

}  // namespace

FairShare::FairShare(std::vector<BytesPerSecond> capacities, std::vector<std::vector<LinkUse>> uses,
                     std::vector<BytesPerSecond> weights)
    : capacities_(std::move(capacities)),
      uses_(std::move(uses)),
      weights_(std::move(weights)),
      present_(capacities_.size()),
      places_(weights_.size()),
      rates_(weights_.size()),
      uses_of_(weights_.size(), 0),
      is_reached_link_(capacities_.size(), false),
      is_rising_(weights_.size(), false),
      is_reached_(weights_.size(), false),
      is_stale_(capacities_.size(), false) {
  for (std::size_t link = 0; link < uses_.size(); ++link) {
    active_.emplace_back(uses_[link].size(), 0);
    for (std::size_t use = 0; use < uses_[link].size(); ++use) {
      places_[uses_[link][use].flow].push_back({static_cast<int>(link), static_cast<int>(use)});
    }
  }
}

void FairShare::add(int link, int use, std::int64_t change) {
  std::int64_t& count = active_[link][use];
  const bool was = count > 0;
  count += change;
  std::vector<int>& present = present_[link];
  const auto place = std::ranges::lower_bound(present, use);
  if (count > 0 && !was) present.insert(place, use);
  if (count == 0 && was) present.erase(place);
  uses_of_[uses_[link][use].flow] += change;
  changed_.push_back({link, use});
}

void FairShare::visit(int link) {
  if (is_reached_link_[link]) return;
  is_reached_link_[link] = true;
  links_.push_back(link);
}

void FairShare::visit_class(FlowClass flow) {
  if (is_reached_[flow]) return;
  is_reached_[flow] = is_rising_[flow] = true;
  classes_.push_back(flow);
  for (const Place& place : places_[flow]) {
    if (active_[place.link][place.use] > 0) visit(place.link);
  }
}

/// Finds the links and classes that the changes can concern.
void FairShare::reach() {
  links_.clear();
  classes_.clear();
  for (const auto& [link, use] : changed_) {
    visit(link);
    const FlowClass flow = uses_[link][use].flow;
    if (uses_of_[flow] == 0) rates_[flow] = {};
    if (uses_of_[flow] > 0) visit_class(flow);
  }
  changed_.clear();
  for (std::size_t next = 0; next < links_.size(); ++next) {
    for (std::size_t i = 0; i < present_[links_[next]].size(); ++i)
      visit_class(uses_[links_[next]][present_[links_[next]][i]].flow);
  }
}

/// The level at which a link becomes full, not below the one reached; never_full if nothing rises.
double FairShare::full_at(int link, double level) const {
  BytesPerSecond taken;
  BytesPerSecond rising;
  for (const int u : present_[link]) {
    const LinkUse& use = uses_[link][u];
    const double loads = static_cast<double>(active_[link][u]) * use.load;
    const bool rises = is_rising_[use.flow];
    (rises ? rising : taken) += loads * (rises ? weights_[use.flow] : rates_[use.flow]);
  }
  if (rising.value <= 0) return never_full;
  return std::max(level, (capacities_[link] - taken) / rising);
}

/// Stops what rises on a link; the links on which it was must be looked at again.
void FairShare::stop_on(int link, double level) {
  for (const int u : present_[link]) {
    const FlowClass flow = uses_[link][u].flow;
    if (!is_rising_[flow]) continue;
    is_rising_[flow] = false;
    rates_[flow] = weights_[flow] * level;
    for (const Place& place : places_[flow]) is_stale_[place.link] = true;
  }
}

const std::vector<BytesPerSecond>& FairShare::rates() {
  reach();
  using Full = std::pair<double, int>;  // the level at which a link becomes full, or a lower one
  std::priority_queue<Full, std::vector<Full>, std::greater<>> queue;
  const auto enqueue = [&](int link, double level) {
    is_stale_[link] = false;
    const double full = full_at(link, level);
    if (full < 1) queue.emplace(full, link);
  };
  for (const int link : links_) enqueue(link, 0);
  std::vector<int> full;
  while (!queue.empty()) {
    const double level = queue.top().first;
    // All that become full at one level do so before any of them is looked at again.
    full.clear();
    while (!queue.empty() && queue.top().first == level) {
      const int link = queue.top().second;
      queue.pop();
      // Flows that stop leave more to the others: what was found before is a lower bound.
      if (is_stale_[link]) {
        enqueue(link, level);
      } else {
        full.push_back(link);
      }
    }
    for (const int link : full) stop_on(link, level);
  }
  for (const FlowClass flow : classes_) {
    if (is_rising_[flow]) rates_[flow] = weights_[flow];
    is_rising_[flow] = is_reached_[flow] = false;
  }
  for (const int link : links_) is_reached_link_[link] = false;
  return rates_;
}

}  // namespace stratagem::sim

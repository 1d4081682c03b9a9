// Keeps remaining volumes; every change of the set re-shares the links.
#include "sim/active_flows.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "base/quantity_text.hpp"

namespace stratagem::sim {

ActiveFlows::ActiveFlows(const Folding& folding)
    : folding_(folding), fair_share_(folding.capacities, folding.link_uses, folding.weights) {}

void ActiveFlows::count(int flow, std::int64_t sign) {
  for (const Flow::Part& part : folding_.flows[flow].parts)
    fair_share_.add(part.link, part.use, sign * part.count);
}

void ActiveFlows::begin(int flow, int handle, Bytes volume) {
  count(flow, +1);
  entries_.push_back({flow, handle, volume, {}, {}, never});
}

Instant ActiveFlows::next_end() const {
  Instant next = never;
  for (const Entry& entry : entries_) next = std::min(next, entry.end);
  return next;
}

std::vector<int> ActiveFlows::end_at(Instant now) {
  std::vector<int> handles;
  for (const Entry& entry : entries_) {
    if (entry.end > now) continue;
    handles.push_back(entry.handle);
    count(entry.flow, -1);
  }
  std::erase_if(entries_, [now](const Entry& entry) { return entry.end <= now; });
  return handles;
}

/// Shares follow from which flows there are.
void ActiveFlows::write(RelativeState& state, const std::vector<int>& handles) const {
  state.add(static_cast<std::int64_t>(entries_.size()));
  for (const Entry& entry : entries_) {
    state.add(entry.flow);
    state.add(std::ranges::lower_bound(handles, entry.handle) - handles.begin());
    state.add_bits(entry.left.value);
    state.add_bits(entry.rate.value);
    state.add(entry.since);
    state.add(entry.end);
  }
}

void ActiveFlows::share(Instant now) {
  const std::vector<BytesPerSecond>& rates = fair_share_.rates();
  for (Entry& entry : entries_) {
    const Flow& flow = folding_.flows[entry.flow];
    // What is on no link shares none: it has the rate that it reaches alone.
    const BytesPerSecond rate = (flow.parts.empty() ? folding_.weights : rates)[flow.flow_class];
    if (rate == entry.rate && entry.end != never) continue;  // its end stands
    entry.left -= entry.rate * to_seconds(now - entry.since);
    entry.left = std::max(entry.left, Bytes{0});
    entry.rate = rate;
    entry.since = now;
    const Seconds remaining = rate.value > 0 ? entry.left / rate : Seconds{0};
    if (!(remaining < longest_task)) {
      throw InputError("", "/cluster",
                       "links that carry a " + cost::to_text(flow.kind) + " of " +
                           to_text(entry.left) + " in less than " + to_text(longest_task),
                       to_text(rate));
    }
    entry.end = now + to_ticks(remaining);
  }
}

}  // namespace stratagem::sim

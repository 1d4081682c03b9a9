// Finds the instance of a rank's collective, and the flow that it takes.
#include "sim/collective_instances.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::sim {

CollectiveInstances::CollectiveInstances(const Folding& folding)
    : folding_(folding), numbers_(folding.communicator_classes.size()) {
  for (std::size_t f = 0; f < folding.flows.size(); ++f) {
    const Flow& flow = folding.flows[f];
    Routes& routes = routes_[{flow.communicator_class, flow.kind}];
    if (flow.payloads.empty()) routes.any = static_cast<int>(f);
    for (const Bytes payload : flow.payloads) routes.by_payload[payload] = static_cast<int>(f);
  }
}

std::optional<int> CollectiveInstances::arrive(int communicator_class, std::size_t k,
                                               const program::Collective& collective,
                                               const Arrival& arrival, Instant when) {
  std::vector<int>& known = numbers_[communicator_class];
  if (k >= known.size()) known.resize(k + 1, -1);
  if (known[k] < 0) {
    const Routes& routes = routes_.at({communicator_class, collective.kind});
    const int flow = routes.any >= 0 ? routes.any : routes.by_payload.at(collective.payload);
    known[k] = static_cast<int>(instances_.size());
    instances_.push_back({&collective, communicator_class, k, flow, when, {}});
    if (!spare_.empty()) {
      instances_.back().arrivals = std::move(spare_.back());
      spare_.pop_back();
    }
    open_.push_back(known[k]);
  }
  CollectiveInstance& instance = instances_[known[k]];
  expects(instance.collective->kind == collective.kind &&
              instance.collective->payload == collective.payload,
          "the k-th collectives of all ranks of a communicator are the same");
  instance.last_arrival = std::max(instance.last_arrival, when);
  instance.arrivals.push_back(arrival);
  const std::size_t ranks = folding_.communicator_classes[communicator_class].actors.size();
  return instance.arrivals.size() == ranks ? std::optional(known[k]) : std::nullopt;
}

void CollectiveInstances::end(int instance) {
  std::vector<Arrival>& arrivals = instances_[instance].arrivals;
  arrivals.clear();
  spare_.push_back(std::move(arrivals));
  open_.erase(std::ranges::lower_bound(open_, instance));
}

void CollectiveInstances::write(RelativeState& state) const {
  state.add(static_cast<std::int64_t>(open_.size()));
  for (const int number : open_) {
    const CollectiveInstance& one = instances_[number];
    state.add(one.communicator_class);
    state.add(one.flow);
    state.add_bits(one.collective->payload.value);
    state.add(one.last_arrival);
    state.add(static_cast<std::int64_t>(one.arrivals.size()));
    for (const Arrival& arrival : one.arrivals) {
      state.add(arrival.actor);
      state.add(arrival.queue);
    }
  }
}

}  // namespace stratagem::sim

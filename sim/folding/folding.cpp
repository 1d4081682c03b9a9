// Chooses representatives of the classes of devices, flows and links.
#include "sim/folding/folding.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "sim/folding/colours.hpp"
#include "sim/folding/raw_flows.hpp"

namespace stratagem::sim {
namespace {

using program::Program;

/// Chooses representatives: of every class the first, or everyone as a class of its own.
struct Classes {
  std::vector<int> of;     ///< by member: its class
  std::vector<int> first;  ///< by class: its representative
  std::vector<int> size;

  Classes(const std::vector<int>& colours, bool folded) {
    of.reserve(colours.size());
    for (std::size_t i = 0; i < colours.size(); ++i) {
      of.push_back(folded ? colours[i] : static_cast<int>(i));
      if (of.back() == static_cast<int>(first.size())) {  // a colour is first seen after lower ones
        first.push_back(static_cast<int>(i));
        size.push_back(0);
      }
      ++size[of.back()];
    }
  }
};

void add_actors(Folding& result, const Program& program, const Classes& devices,
                const Classes& communicators) {
  for (std::size_t a = 0; a < devices.first.size(); ++a) {
    const program::Device& device = program.devices[devices.first[a]];
    Actor actor{.device = devices.first[a],
                .multiplicity = devices.size[a],
                .sequence = device.sequence,
                .communicator_classes = {}};
    for (const int c : device.groups)
      actor.communicator_classes.push_back(c < 0 ? -1 : communicators.of[c]);
    result.actors.push_back(std::move(actor));
  }
  for (std::size_t m = 0; m < communicators.first.size(); ++m) {
    std::set<int> members;
    for (const int rank : program.communicators[communicators.first[m]].ranks)
      members.insert(devices.of[rank]);
    result.communicator_classes.push_back(
        {{members.begin(), members.end()}, communicators.size[m]});
  }
}

/// The uses of one link by (class, load) in ascending order; of each the representatives of its
/// flows, counted.
using Uses = std::map<std::pair<int, double>, std::map<int, std::int64_t>>;

/// Of the representatives among the links, in their order.
std::vector<Uses> uses_of(const RawFlows& raw, const Colours& colours, const Classes& flows,
                          const Classes& links) {
  std::vector<Uses> uses(links.first.size());
  for (std::size_t f = 0; f < raw.flows.size(); ++f) {
    for (const auto& [link, amount] : raw.loads_of(raw.flows[f])) {
      const int of = links.of[link];
      if (links.first[of] == link) ++uses[of][{colours.flows[f], raw.amounts[amount]}][flows.of[f]];
    }
  }
  return uses;
}

/// Adds a link and tells every flow where it counts.
void add_link(Folding& result, BytesPerSecond capacity, const Uses& uses) {
  const auto id = static_cast<int>(result.capacities.size());
  result.capacities.push_back(capacity);
  result.link_uses.emplace_back();
  for (const auto& [key, members] : uses) {
    LinkUse use{.flow = key.first, .load = key.second, .count = 0};
    for (const auto& [flow, count] : members) {
      result.flows[flow].parts.push_back(
          {id, static_cast<int>(result.link_uses.back().size()), count});
      use.count += count;
    }
    result.link_uses.back().push_back(use);
  }
}

}  // namespace

Folding fold(const Program& program, const topology::Cluster& cluster,
             const cost::CollectiveConstants& constants, bool folded) {
  cost::Collectives closed_form(cluster, constants);
  return fold(program, closed_form, folded);
}

Folding fold(const Program& program, cost::Collectives& collectives, bool folded) {
  expects(static_cast<int>(program.devices.size()) <= collectives.cluster().gpus(),
          "a program has at most as many devices as the cluster");
  const RawFlows raw = raw_flows(program, collectives);
  const Colours colours = colours_of(program, raw);
  const Classes devices(colours.devices, folded);
  const Classes communicators(colours.communicators, folded);
  const Classes flows(colours.flows, folded);
  const Classes links(colours.links, folded);
  Folding result;
  add_actors(result, program, devices, communicators);
  result.actor_of = devices.of;
  for (const int f : flows.first) {
    const RawFlow& flow = raw.flows[f];
    result.flows.push_back({.kind = flow.kind,
                            .payloads = raw.payloads[flow.payloads],
                            .communicator_class = communicators.of[flow.communicator],
                            .flow_class = colours.flows[f],
                            .latency = flow.latency,
                            .parts = {}});
  }
  std::map<Uses, BytesPerSecond> slowest;
  const std::vector<Uses> uses_by_link = uses_of(raw, colours, flows, links);
  for (std::size_t l = 0; l < uses_by_link.size(); ++l) {
    const BytesPerSecond capacity = raw.capacities[links.first[l]];
    const auto [found, fresh] = slowest.emplace(uses_by_link[l], capacity);
    found->second = std::min(found->second, capacity);
  }
  for (const auto& [uses, capacity] : slowest) add_link(result, capacity, uses);
  if (const auto& slowdown = collectives.constants().compute_slowdown)
    result.compute_slowdown = slowdown->value;
  result.serial = collectives.cluster().design().on_processors();
  for (const int f : Classes(colours.flows, true).first)  // a flow of each colour
    result.weights.push_back(raw.flows[f].weight);
  return result;
}

}  // namespace stratagem::sim

// Adds up what every collective of an iteration puts on each link.
#include "sim/busiest_link.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <variant>
#include <vector>

namespace stratagem::sim {
namespace {

/// By flow of a folding: what it carries in one iteration. Of the groups that connect a member to
/// the flow's communicators one is counted.
std::vector<Bytes> volumes_of(const program::Program& program, const Folding& folding) {
  using Sent = std::tuple<int, cost::CollectiveKind, Bytes>;
  std::map<Sent, Bytes> sent;  // by communicator class, kind and payload
  std::vector<bool> counted(folding.communicator_classes.size());
  for (const Actor& actor : folding.actors) {
    std::map<int, int> class_of;  // by group
    for (int group = 0; group < static_cast<int>(actor.communicator_classes.size()); ++group) {
      const int of = actor.communicator_classes[group];
      if (of < 0 || counted[of]) continue;
      counted[of] = true;
      class_of.emplace(group, of);
    }
    if (class_of.empty()) continue;
    const program::Calls& calls = program.sequences[actor.sequence].calls;
    for (std::size_t call = 0; call < calls.size(); ++call) {
      for (const program::Task& task : program.blocks[calls.body(call).block].tasks) {
        const auto* collective = std::get_if<program::Collective>(&task.work);
        if (collective == nullptr || !class_of.contains(collective->group)) continue;
        sent[{class_of.at(collective->group), collective->kind, collective->payload}] +=
            collective->payload;
      }
    }
  }
  std::vector<Bytes> volumes;
  for (const Flow& flow : folding.flows) {
    Bytes& volume = volumes.emplace_back();
    for (const auto& [what, bytes] : sent) {
      const auto& [of, kind, payload] = what;
      const bool takes = flow.payloads.empty() || std::ranges::count(flow.payloads, payload) > 0;
      if (of == flow.communicator_class && kind == flow.kind && takes) volume += bytes;
    }
  }
  return volumes;
}

}  // namespace

Seconds busiest_link(const program::Program& program, const Folding& folding) {
  constexpr double rounding = 1e-9;  // far more than what ends in whole picoseconds
  if (program.lag > 0) return {};
  const std::vector<Bytes> volumes = volumes_of(program, folding);
  std::vector<Bytes> carried(folding.capacities.size());
  for (std::size_t f = 0; f < folding.flows.size(); ++f) {
    for (const Flow::Part& part : folding.flows[f].parts) {
      const double load = folding.link_uses[part.link][part.use].load;
      carried[part.link] += static_cast<double>(part.count) * load * volumes[f];
    }
  }
  Seconds busiest;
  for (std::size_t link = 0; link < carried.size(); ++link)
    busiest = std::max(busiest, carried[link] / folding.capacities[link]);
  return (1 - rounding) * busiest;
}

}  // namespace stratagem::sim

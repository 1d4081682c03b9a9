// Adds up what every collective of an iteration puts on each link.
#include "sim/busiest_link.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <variant>
#include <vector>

namespace stratagem::sim {
namespace {

struct Sent {
  double collectives = 0;
  Bytes bytes;  ///< payloads of all of them
};

/// By communicator class, kind and payload: what is sent in one iteration. All members of a class
/// take part in all that it sends, so each class is counted at the first actor that belongs to it.
std::map<std::tuple<int, cost::CollectiveKind, Bytes>, Sent> sent_in(
    const program::Program& program, const Folding& folding) {
  std::map<std::tuple<int, cost::CollectiveKind, Bytes>, Sent> sent;
  std::vector<bool> counted(folding.communicator_classes.size());
  for (const Actor& actor : folding.actors) {
    std::map<int, int> class_of;  // by group
    for (int group = 0; group < static_cast<int>(actor.communicator_classes.size()); ++group) {
      const int of = actor.communicator_classes[group];
      if (of < 0 || counted[of]) continue;
      counted[of] = true;
      class_of.emplace(group, of);
    }
    const program::Calls& calls = program.sequences[actor.sequence].calls;
    for (std::size_t c = 0; c < calls.stored().size(); ++c) {
      const program::Loop* loop = calls.loop_of(static_cast<int>(c));
      const double times = loop != nullptr ? loop->turns : 1;
      for (const program::Task& task : program.blocks[calls.stored()[c].block].tasks) {
        const auto* collective = std::get_if<program::Collective>(&task.work);
        if (collective == nullptr || !class_of.contains(collective->group)) continue;
        Sent& all = sent[{class_of.at(collective->group), collective->kind, collective->payload}];
        all.collectives += times;
        all.bytes += times * collective->payload;
      }
    }
  }
  return sent;
}

}  // namespace

Seconds busiest_link(const program::Program& program, const Folding& folding) {
  constexpr Seconds early{1e-12};    // a flow ends in whole picoseconds, so perhaps too soon
  constexpr double rounding = 1e-9;  // of sums of doubles
  if (program.lag > 0) return {};
  const auto sent = sent_in(program, folding);
  std::vector<Seconds> busy(folding.capacities.size());
  for (const Flow& flow : folding.flows) {
    for (const auto& [what, all] : sent) {
      const auto& [of, kind, payload] = what;
      const bool takes = flow.payloads.empty() || std::ranges::count(flow.payloads, payload) > 0;
      if (of != flow.communicator_class || kind != flow.kind || !takes) continue;
      for (const Flow::Part& part : flow.parts) {
        const double load = folding.link_uses[part.link][part.use].load;
        busy[part.link] +=
            static_cast<double>(part.count) *
            (load * all.bytes / folding.capacities[part.link] - all.collectives * early);
      }
    }
  }
  Seconds busiest;
  for (const Seconds time : busy) busiest = std::max(busiest, time);
  return (1 - rounding) * busiest;
}

}  // namespace stratagem::sim

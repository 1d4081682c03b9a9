// Orders calls with all devices of a sequence as one; if that is impossible, tasks of sequences; if
// that is, too, tasks of every device.
#include "program/check/deadlock.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "program/check/event_graph.hpp"
#include "program/check/repeated_turns.hpp"
#include "program/check/rounds.hpp"
#include "program/check/steps.hpp"
#include "program/shorter.hpp"

namespace stratagem::program {
namespace {

/// By sequence, call and task: which task of its step of calls it is.
class PlacesInSteps {
 public:
  explicit PlacesInSteps(const Program& program) {
    for (const Sequence& sequence : program.sequences) {
      std::vector<std::vector<int>>& calls = places_.emplace_back();
      if (sequence.launches.empty()) continue;
      const std::vector<int> first = first_beside(sequence);
      std::vector<int> next(sequence.calls.size(), 0);  // by first call of a step
      calls.resize(sequence.calls.size());
      each_launch(program, sequence, [&](const Launch& launch) {
        for (int task = launch.first; task < launch.end; ++task)
          calls[launch.call].push_back(next[first[launch.call]]++);
      });
    }
  }
  [[nodiscard]] int of(int sequence, const TaskOfCall& place) const {
    return places_[sequence].empty() ? place.task : places_[sequence][place.call][place.task];
  }

 private:
  std::vector<std::vector<std::vector<int>>> places_;
};

/// Do collectives that meet stand at the same place of their steps? Then calls that meet can go
/// through their blocks side by side.
bool side_by_side(const Program& program, const Rendezvous& rendezvous) {
  const PlacesInSteps places(program);
  const auto all = [&](int endpoint) {
    std::vector<int> result;
    for (const TaskOfCall& place : rendezvous.posted(endpoint))
      result.push_back(places.of(rendezvous.sequence(endpoint), place));
    return result;
  };
  return std::ranges::all_of(rendezvous.peer_sets(), [&](const std::vector<int>& peers) {
    const std::vector<int> first = all(peers.front());
    return std::ranges::all_of(peers, [&](int endpoint) { return all(endpoint) == first; });
  });
}

/// Can all be ordered with the devices of a sequence as one? Such an order is one of all devices.
/// A cycle of tasks would be one of calls, since within a step, and within steps side by side,
/// everything leads to later tasks.
struct Order {
  Rounds rounds;
  EventGraph graph;
};
Order order_of(const Program& program, const Rendezvous& rendezvous, Grain grain) {
  Rounds rounds(program, rendezvous, grain);
  for (std::size_t s = 0; s < program.sequences.size(); ++s) rounds.add_actor(static_cast<int>(s));
  EventGraph graph = rounds.graph();
  for (const std::vector<int>& peers : rendezvous.peer_sets()) {
    std::vector<Member> actors;
    for (const int endpoint : peers) actors.push_back({rendezvous.sequence(endpoint), endpoint});
    rounds.meet(graph, actors);
  }
  return {std::move(rounds), std::move(graph)};
}

bool in_order(const Program& program, const Rendezvous& rendezvous, Grain grain) {
  if (grain == Grain::calls && !side_by_side(program, rendezvous)) return false;
  return order_of(program, rendezvous, grain).graph.cycle().empty();
}

/// The same of a program that is shorter: does its order go through turns of all its long loops at
/// once? Then a program with more turns can go through them once more for each.
bool in_order_by_turns(const Program& program, int spare, Grain grain) {
  std::optional<Shorter> shorter = program::shorter(program, spare);
  if (!shorter) return false;
  Program small = program;
  small.sequences = std::move(shorter->sequences);
  const Rendezvous rendezvous(small);
  if (grain == Grain::calls && !side_by_side(small, rendezvous)) return false;
  const auto& [rounds, graph] = order_of(small, rendezvous, grain);
  return turns_repeat(small, shorter->long_loops, rounds, graph.levels());
}

}  // namespace

void check_deadlock(const Program& program, const Rendezvous& rendezvous) {
  constexpr int spare = 20;  // micro-batches: most orders repeat within fewer turns
  for (const Grain grain : {Grain::calls, Grain::tasks}) {
    if (in_order_by_turns(program, spare, grain) || in_order(program, rendezvous, grain)) return;
  }
  Rounds rounds(program, rendezvous, Grain::tasks);
  for (const Device& device : program.devices) rounds.add_actor(device.sequence);
  EventGraph graph = rounds.graph();
  for (const std::vector<Member>& ranks : rendezvous.communicators()) {
    if (!ranks.empty()) rounds.meet(graph, ranks);
  }
  const std::vector<EventGraph::Edge> cycle = graph.cycle();
  if (cycle.empty()) return;
  throw InputError("", "", "devices that do not wait for each other for ever",
                   rounds.describe(cycle));
}

}  // namespace stratagem::program

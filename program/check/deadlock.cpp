// Orders calls with all devices of a sequence as one; if that is impossible, tasks of sequences; if
// that is, too, tasks of every device.
#include "program/check/deadlock.hpp"

#include <algorithm>
#include <string>

#include "base/input_error.hpp"
#include "program/check/event_graph.hpp"
#include "program/check/steps.hpp"

namespace stratagem::program {
namespace {

/// Everything that all actors do in some rounds; actors are sequences or devices.
class Rounds {
 public:
  Rounds(const Program& program, const Rendezvous& rendezvous, Grain grain)
      : program_(program), rendezvous_(rendezvous), grain_(grain) {
    // Iterations meet only where they overlap.
    iterations_ = program.lag == 0 ? 1 : 2 * (program.lag + 1);
    rounds_ = iterations_ + program.lag;
    const Queues queues(program, rendezvous.groups());
    for (const Sequence& sequence : program.sequences)
      steps_.push_back(steps_of(program, sequence, grain, queues));
  }

  void add_actor(int sequence) {
    actors_.push_back({sequence, count_});
    count_ += rounds_ * static_cast<int>(steps_[sequence].places.size());
  }

  /// What every actor does in order.
  [[nodiscard]] EventGraph graph() const {
    EventGraph graph(count_);
    for (const Actor& actor : actors_) add_order(graph, actor);
    return graph;
  }

  /// The k-th collectives of some actors are one, each actor's at an endpoint.
  void meet(EventGraph& graph, const std::vector<Member>& actors) const {
    const std::size_t count = rendezvous_.posted(actors.front().endpoint).size();
    for (int iteration = 0; iteration < iterations_; ++iteration) {
      for (std::size_t k = 0; k < count; ++k) {
        const int one = occurrence(actors.front(), iteration, k);
        for (const Member& actor : actors) graph.together(one, occurrence(actor, iteration, k));
      }
    }
  }

  /// "on device 0 A before B; on device 1 B before A": actors are devices.
  [[nodiscard]] std::string describe(std::vector<EventGraph::Edge> cycle) const {
    // Begin where the cycle comes to its first device.
    const auto comes_to_first = [&](std::size_t i) {
      const int here = device(cycle[i].first);
      const int before = device(cycle[(i + cycle.size() - 1) % cycle.size()].first);
      return std::pair(here, before == here);
    };
    std::size_t begin = 0;
    for (std::size_t i = 1; i < cycle.size(); ++i) {
      if (comes_to_first(i) < comes_to_first(begin)) begin = i;
    }
    std::rotate(cycle.begin(), cycle.begin() + static_cast<std::ptrdiff_t>(begin), cycle.end());
    std::string text;
    for (std::size_t first = 0; first < cycle.size();) {
      std::size_t last = first;  // on one device
      while (last + 1 < cycle.size() && device(cycle[last + 1].first) == device(cycle[first].first))
        ++last;
      text +=
          (text.empty() ? "" : "; ") + ("on device " + std::to_string(device(cycle[first].first)));
      text += " " + name(cycle[first].first) + " before " + name(cycle[last].second);
      first = last + 1;
    }
    return text;
  }

 private:
  struct Actor {
    int sequence = 0;
    int first = 0;  ///< its occurrences are numbered from here, round by round
  };

  [[nodiscard]] bool runs(int sequence, int step, int round) const {
    const Calls& calls = program_.sequences[sequence].calls;
    const int iteration = round - calls.body(steps_[sequence].places[step].call).lag;
    return iteration >= 0 && iteration < iterations_;
  }

  void add_order(EventGraph& graph, const Actor& actor) const {
    const Steps& steps = steps_[actor.sequence];
    const auto count = static_cast<int>(steps.places.size());
    for (int round = 0; round < rounds_; ++round) {
      const int first = actor.first + round * count;
      for (const auto& [before, after] : steps.queued) graph.before(first + before, first + after);
      for (const auto& [before, after] : steps.waits) {
        if (runs(actor.sequence, before, round) && runs(actor.sequence, after, round))
          graph.before(first + before, first + after);
      }
      if (round + 1 == rounds_) continue;
      for (const auto& [before, after] : steps.wrapped)
        graph.before(first + before, first + count + after);
    }
  }

  [[nodiscard]] int occurrence(const Member& member, int iteration, std::size_t k) const {
    const Actor& actor = actors_[member.device];
    const Steps& steps = steps_[actor.sequence];
    const TaskOfCall& place = rendezvous_.posted(member.endpoint)[k];
    const int of_call = steps.first[place.call];
    const int step = grain_ == Grain::calls ? of_call : of_call + place.task;
    const int round = iteration + program_.sequences[actor.sequence].calls.body(place.call).lag;
    return actor.first + round * static_cast<int>(steps.places.size()) + step;
  }

  [[nodiscard]] int device(int occurrence) const {
    const auto after = std::ranges::upper_bound(actors_, occurrence, {}, &Actor::first);
    return static_cast<int>(after - actors_.begin()) - 1;
  }

  [[nodiscard]] std::string name(int occurrence) const {
    const Actor& actor = actors_[device(occurrence)];
    const Steps& steps = steps_[actor.sequence];
    const int at = occurrence - actor.first;
    const auto count = static_cast<int>(steps.places.size());
    const TaskOfCall& place = steps.places[at % count];
    const Sequence& sequence = program_.sequences[actor.sequence];
    const std::string text = program::describe(program_, sequence, place);
    if (rounds_ == 1) return text;
    return text + " of iteration " +
           std::to_string(at / count - sequence.calls.body(place.call).lag);
  }

  const Program& program_;
  const Rendezvous& rendezvous_;
  Grain grain_;
  int iterations_ = 1;
  int rounds_ = 1;
  int count_ = 0;
  std::vector<Steps> steps_;  ///< by sequence
  std::vector<Actor> actors_;
};

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
bool in_order(const Program& program, const Rendezvous& rendezvous, Grain grain) {
  if (grain == Grain::calls && !side_by_side(program, rendezvous)) return false;
  Rounds rounds(program, rendezvous, grain);
  for (std::size_t s = 0; s < program.sequences.size(); ++s) rounds.add_actor(static_cast<int>(s));
  EventGraph graph = rounds.graph();
  for (const std::vector<int>& peers : rendezvous.peer_sets()) {
    std::vector<Member> actors;
    for (const int endpoint : peers) actors.push_back({rendezvous.sequence(endpoint), endpoint});
    rounds.meet(graph, actors);
  }
  return graph.cycle().empty();
}

}  // namespace

void check_deadlock(const Program& program, const Rendezvous& rendezvous) {
  for (const Grain grain : {Grain::calls, Grain::tasks}) {
    if (in_order(program, rendezvous, grain)) return;
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

// Numbers the steps of every actor, round by round.
#include "program/check/rounds.hpp"

#include <algorithm>
#include <utility>

#include "program/check/describe.hpp"

namespace stratagem::program {

Rounds::Rounds(const Program& program, const Rendezvous& rendezvous, Grain grain)
    : program_(program), rendezvous_(rendezvous), grain_(grain) {
  // Iterations meet only where they overlap.
  iterations_ = program.lag == 0 ? 1 : 2 * (program.lag + 1);
  rounds_ = iterations_ + program.lag;
  const Queues queues(program, rendezvous.groups());
  for (const Sequence& sequence : program.sequences)
    steps_.push_back(steps_of(program, sequence, grain, queues));
}

void Rounds::add_actor(int sequence) {
  actors_.push_back({sequence, count_});
  count_ += rounds_ * static_cast<int>(steps_[sequence].places.size());
}

EventGraph Rounds::graph() const {
  EventGraph graph(count_);
  for (const Actor& actor : actors_) add_order(graph, actor);
  return graph;
}

void Rounds::meet(EventGraph& graph, const std::vector<Member>& actors) const {
  const std::size_t count = rendezvous_.posted(actors.front().endpoint).size();
  for (int iteration = 0; iteration < iterations_; ++iteration) {
    for (std::size_t k = 0; k < count; ++k) {
      const int one = occurrence(actors.front(), iteration, k);
      for (const Member& actor : actors) graph.together(one, occurrence(actor, iteration, k));
    }
  }
}

std::string Rounds::describe(std::vector<EventGraph::Edge> cycle) const {
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

bool Rounds::runs(int sequence, int step, int round) const {
  const Calls& calls = program_.sequences[sequence].calls;
  const int iteration = round - calls.body(steps_[sequence].places[step].call).lag;
  return iteration >= 0 && iteration < iterations_;
}

void Rounds::add_order(EventGraph& graph, const Actor& actor) const {
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

int Rounds::occurrence(const Member& member, int iteration, std::size_t k) const {
  const Actor& actor = actors_[member.device];
  const Steps& steps = steps_[actor.sequence];
  const TaskOfCall& place = rendezvous_.posted(member.endpoint)[k];
  const int of_call = steps.first[place.call];
  const int step = grain_ == Grain::calls ? of_call : of_call + place.task;
  const int round = iteration + program_.sequences[actor.sequence].calls.body(place.call).lag;
  return actor.first + round * static_cast<int>(steps.places.size()) + step;
}

int Rounds::device(int occurrence) const {
  const auto after = std::ranges::upper_bound(actors_, occurrence, {}, &Actor::first);
  return static_cast<int>(after - actors_.begin()) - 1;
}

std::string Rounds::name(int occurrence) const {
  const Actor& actor = actors_[device(occurrence)];
  const Steps& steps = steps_[actor.sequence];
  const int at = occurrence - actor.first;
  const auto count = static_cast<int>(steps.places.size());
  const TaskOfCall& place = steps.places[at % count];
  const Sequence& sequence = program_.sequences[actor.sequence];
  const std::string text = program::describe(program_, sequence, place);
  if (rounds_ == 1) return text;
  return text + " of iteration " + std::to_string(at / count - sequence.calls.body(place.call).lag);
}

}  // namespace stratagem::program

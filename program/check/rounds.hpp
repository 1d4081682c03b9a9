// What all sequences or all devices do in some rounds, as a graph of events.
#pragma once

#include <string>
#include <vector>

#include "program/check/event_graph.hpp"
#include "program/check/rendezvous.hpp"
#include "program/check/steps.hpp"
#include "program/program.hpp"

namespace stratagem::program {

/// Everything that all actors do in some rounds; actors are sequences or devices.
class Rounds {
 public:
  Rounds(const Program& program, const Rendezvous& rendezvous, Grain grain);

  void add_actor(int sequence);
  /// What every actor does in order.
  [[nodiscard]] EventGraph graph() const;
  /// The k-th collectives of some actors are one, each actor's at an endpoint.
  void meet(EventGraph& graph, const std::vector<Member>& actors) const;
  /// "on device 0 A before B; on device 1 B before A": actors are devices.
  [[nodiscard]] std::string describe(std::vector<EventGraph::Edge> cycle) const;

  /// The steps of an actor, and the number of its first occurrence in the first round.
  [[nodiscard]] const Steps& steps(std::size_t actor) const {
    return steps_[actors_[actor].sequence];
  }
  [[nodiscard]] int first(std::size_t actor) const { return actors_[actor].first; }

 private:
  struct Actor {
    int sequence = 0;
    int first = 0;  ///< its occurrences are numbered from here, round by round
  };

  [[nodiscard]] bool runs(int sequence, int step, int round) const;
  void add_order(EventGraph& graph, const Actor& actor) const;
  [[nodiscard]] int occurrence(const Member& member, int iteration, std::size_t k) const;
  [[nodiscard]] int device(int occurrence) const;
  [[nodiscard]] std::string name(int occurrence) const;

  const Program& program_;
  const Rendezvous& rendezvous_;
  Grain grain_;
  int iterations_ = 1;
  int rounds_ = 1;
  int count_ = 0;
  std::vector<Steps> steps_;  ///< by sequence
  std::vector<Actor> actors_;
};

}  // namespace stratagem::program

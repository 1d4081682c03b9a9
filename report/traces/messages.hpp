// Which task sends a message, and which receives it.
#pragma once

#include <vector>

#include "program/program.hpp"
#include "sim/timeline.hpp"

namespace stratagem::report {

/// A task of an actor, by its number in a round.
struct ActorTask {
  int actor = 0;
  int task = 0;
};

/// Both begin at one instant.
struct Message {
  ActorTask sent, received;
};

/// The messages that actors' first devices send and others receive in one round. Where iterations
/// overlap, some that are sent in a round are received in another one: these are left out. Messages
/// of one communicator arrive in the order in which they are sent.
std::vector<Message> messages(const program::Program& program, const sim::Timeline& timeline);

}  // namespace stratagem::report

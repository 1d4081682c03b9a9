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

struct Message {
  ActorTask sent, received;
};

/// All messages of one round that actors' first devices send, in the order of these and of their
/// tasks. Messages of a pair of devices arrive in the order in which they are sent.
std::vector<Message> messages(const program::Program& program, const sim::Timeline& timeline);

}  // namespace stratagem::report

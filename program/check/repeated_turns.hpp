// Whether an order of events repeats from turn to turn of loops.
#pragma once

#include <vector>

#include "program/check/rounds.hpp"
#include "program/program.hpp"
#include "program/shorter.hpp"

namespace stratagem::program {

/// Events happen level by level, each as soon as all before it have happened (EventGraph::levels).
/// Are there two levels between which every step of every long loop happens for one more turn, with
/// all steps before the loops done and none after them? Then what has happened is the same at both,
/// but for a turn, and so is what may happen next: it can happen as often as there are turns. Steps
/// that nothing is before can happen at any time. Actors of `rounds` are the program's sequences.
bool turns_repeat(const Program& program, const std::vector<Shorter::LongLoop>& long_loops,
                  const Rounds& rounds, const std::vector<int>& levels);

}  // namespace stratagem::program

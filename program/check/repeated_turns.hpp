// Whether an order of events repeats from turn to turn of loops.
#pragma once

#include <vector>

#include "program/check/rounds.hpp"
#include "program/program.hpp"
#include "program/shorter.hpp"

namespace stratagem::program {

/// Let events happen level by level (EventGraph::levels). Are there two levels between which every
/// step of every long loop happens for exactly one more turn? All steps before the loops have to be
/// done by the first level, and none after them by the second. Then the same may happen next at
/// both levels, one turn later: so it can happen once more for each turn that a longer program has.
/// Steps that wait for nothing can happen at any time, and do not count. Actors of `rounds` are the
/// program's sequences.
bool turns_repeat(const Program& program, const std::vector<Shorter::LongLoop>& long_loops,
                  const Rounds& rounds, const std::vector<int>& levels);

}  // namespace stratagem::program

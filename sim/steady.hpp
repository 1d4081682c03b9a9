// Plays iterations until they take equally long.
#pragma once

#include "program/program.hpp"
#include "sim/engine.hpp"
#include "sim/folding/folding.hpp"
#include "sim/price.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// Simulates 4 iterations, and as many more as the program's lag where iterations overlap. Does so
/// with 6, then with 12, unless the measured period is that before it, or rounds repeat. Later
/// periods do not count, since what follows an iteration may delay its end.
Timeline run_until_steady(const program::Program& program, const Folding& folding,
                          const Prices& prices, Repeats repeats = Repeats::left_out);

}  // namespace stratagem::sim

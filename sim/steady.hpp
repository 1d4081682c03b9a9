// Plays iterations until they take equally long.
#pragma once

#include "program/program.hpp"
#include "sim/engine.hpp"
#include "sim/folding/folding.hpp"
#include "sim/price.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// Simulates until two successive periods agree, in 4, 6 or 12 iterations. If iterations overlap,
/// in as many more as the program's lag. The last period that counts is that of the measured
/// iteration (timeline.hpp): what follows it may delay its end.
Timeline run_until_steady(const program::Program& program, const Folding& folding,
                          const Prices& prices, Repeats repeats = Repeats::left_out);

}  // namespace stratagem::sim

// Plays iterations until they take equally long.
#pragma once

#include <cstdint>

#include "program/program.hpp"
#include "sim/folding/folding.hpp"
#include "sim/price.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// Are turns of loops in which a simulation repeats left out of the timeline, or simulated? Both
/// give the same figures.
enum class Repeats : std::uint8_t { left_out, simulated };

/// Simulates until two successive periods agree, in 3, 6 or 12 iterations. If iterations overlap,
/// in as many more as the program's lag.
Timeline run_until_steady(const program::Program& program, const Folding& folding,
                          const Prices& prices, Repeats repeats = Repeats::left_out);

}  // namespace stratagem::sim

// A lower bound of an iteration's time by what its collectives carry.
#pragma once

#include "base/quantity.hpp"
#include "program/program.hpp"
#include "sim/folding/folding.hpp"

namespace stratagem::sim {

/// The bytes that all collectives of an iteration put on the link that is busiest with them,
/// divided by its usable bandwidth; sends and copies to hosts and drives count, too. A network that
/// many groups share may be full though none of their queues is. 0 where iterations overlap. It
/// bounds the mean iteration, and so any run whose iterations repeat; one that is reported as not
/// steady may end with a shorter one.
Seconds busiest_link(const program::Program& program, const Folding& folding);

}  // namespace stratagem::sim

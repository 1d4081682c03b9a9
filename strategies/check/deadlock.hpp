// Checks that no devices deadlock.
#pragma once

#include "strategies/check/rendezvous.hpp"
#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Throws InputError with one cycle over queues, waits and collectives. Expects check_references.
void check_deadlock(const Program& program, const Rendezvous& rendezvous);

}  // namespace stratagem::strategies

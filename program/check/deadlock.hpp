// Checks that no devices deadlock.
#pragma once

#include "program/check/rendezvous.hpp"
#include "program/program.hpp"

namespace stratagem::program {

/// Throws InputError with one cycle over queues, waits and collectives. Expects check_references.
void check_deadlock(const Program& program, const Rendezvous& rendezvous);

}  // namespace stratagem::program

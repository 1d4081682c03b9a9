// Messages are taken in the order in which they come.
#pragma once

#include "strategies/check/rendezvous.hpp"
#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Throws InputError where a device runs the cells that read messages of one communicator in another
/// order than it receives them. A Program can have the receives posted ahead, in the order in which
/// they are sent; a framework posts one when its cell comes, and over NCCL, whose messages have no
/// tags, waits for ever. Expects check_references.
void check_arrivals(const Program& program, const Rendezvous& rendezvous);

}  // namespace stratagem::strategies

// Checks that cells read messages in the order in which they arrive.
#pragma once

#include "program/check/rendezvous.hpp"
#include "program/program.hpp"

namespace stratagem::program {

/// Throws InputError if a device runs the cells that read messages of one communicator in another
/// order than the messages are sent. In a Program, receives can be posted ahead, in the order of
/// the sends. A framework posts a receive just before its cell; NCCL messages have no tags, so it
/// would deadlock. Expects check_references.
void check_arrivals(const Program& program, const Rendezvous& rendezvous);

}  // namespace stratagem::program

// Buffers are born, written, read and freed in that order.
#pragma once

#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Throws InputError where a task of a sequence, in the order of the program, gives birth to a buffer
/// twice, reads one that nobody wrote, uses or frees one that is not alive, or where one is alive in
/// the end. Within a call every slot that is born has a buffer of its own (a tensor may lie there in
/// two layouts, or be computed again); what outlives the call is known by its tensor and the repeat
/// of the forward pass of a slice of a micro-batch, and must be the only one. Residents are there
/// always. Expects check_references.
void check_lives(const Program& program);

}  // namespace stratagem::strategies

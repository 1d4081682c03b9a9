// Checks that buffers are allocated, written, read and freed in that order.
#pragma once

#include "program/program.hpp"

namespace stratagem::program {

/// Throws InputError if a task of a sequence, in program order, allocates a buffer twice, reads one
/// that was never written, uses or frees one that is not allocated, or if one stays allocated at
/// the end. A buffer that outlives its call must be the only one that is known by its owner and
/// tensor (program/buffers.hpp). Residents are always there. Expects check_references.
void check_lives(const Program& program);

}  // namespace stratagem::program

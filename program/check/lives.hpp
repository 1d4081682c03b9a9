// Checks that buffers are allocated, written, read and freed in that order.
#pragma once

#include "program/program.hpp"

namespace stratagem::program {

/// Throws InputError if a task of a sequence, in program order, allocates a buffer twice, reads one
/// that was never written, uses or frees one that is not allocated, or if one stays allocated at
/// the end. Within a call, every slot that is allocated is a buffer of its own: a tensor may be
/// there in two layouts, or be computed again. A buffer that outlives its call is identified by its
/// tensor and the repeat of the forward pass of a slice of a micro-batch, and must be the only one.
/// Residents are always there. Expects check_references.
void check_lives(const Program& program);

}  // namespace stratagem::program

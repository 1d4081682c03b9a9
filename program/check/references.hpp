// Checks that indices within a program name something, and that waits are for earlier tasks.
#pragma once

#include "program/program.hpp"

namespace stratagem::program {

/// Throws InputError for the first index that names nothing, for waits that are not for earlier
/// tasks, and for residents that do not live from one task to a later one.
void check_references(const Program& program);

}  // namespace stratagem::program

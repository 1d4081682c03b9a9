// Indices within a program name what is there, and waits look back.
#pragma once

#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Throws InputError for the first index that names nothing, and for waits that are not for earlier
/// tasks, and for residents that do not live from one task to a later one.
void check_references(const Program& program);

}  // namespace stratagem::strategies

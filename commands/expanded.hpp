// `simulate --program FOLDER --expanded`: the programs of a scenario, to be compared with those of
// other versions.
#pragma once

#include "commands/arguments.hpp"

namespace stratagem::commands {

/// Lowers the runs of a scenario, or the one that --run names, and writes the text of each to a
/// file of its own as soon as it is there: "FOLDER/RUN.txt". Of a run that is refused, the file
/// says why. Nothing is simulated.
/// Returns an exit code. Throws UsageError for options that need a simulation.
int write_programs(const Arguments& asked);

}  // namespace stratagem::commands

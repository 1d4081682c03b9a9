// `--jobs N`: how many runs a command simulates at once.
#pragma once

#include "commands/arguments.hpp"

namespace stratagem::commands {

/// Each run takes memory of its own, see lowering/size.hpp. Answers do not depend on N.
void add_jobs(Options& options);

/// As asked, or as many as there are processors. Throws UsageError for less than one.
int jobs(const Arguments& asked);

}  // namespace stratagem::commands

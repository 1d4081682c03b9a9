// The run of a scenario that a command is about.
#pragma once

#include "commands/arguments.hpp"
#include "search/scenario.hpp"

namespace stratagem::commands {

/// `--run NAME`, or the first. Throws UsageError for a name that no run has.
const search::Run& chosen_run(const search::Scenario& scenario, const Arguments& asked);

}  // namespace stratagem::commands

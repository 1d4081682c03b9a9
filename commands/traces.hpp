// What `simulate` writes of one run for other programs to read: traces.
#pragma once

#include <string>
#include <vector>

#include "commands/arguments.hpp"
#include "commands/outputs.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::commands {

/// Throws, before anything is simulated: UsageError for what is no device of the run in
/// --trace-devices, InputError for --chakra of more ranks than it writes.
void check_traces(const study::Run& run, const Arguments& asked);

/// For Perfetto, of the devices that were asked for.
Output trace_of(const study::Run& run, const study::Simulated& simulated, const Arguments& asked);

/// Chakra's: a file for each rank, as run.0.et, and the ranks of groups, run.groups.json.
void add_execution_traces(const study::Simulated& simulated, const std::string& folder,
                          std::vector<Output>& outputs);

}  // namespace stratagem::commands

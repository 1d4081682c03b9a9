// The run of a scenario that a command is about.
#pragma once

#include <string>
#include <vector>

#include "commands/arguments.hpp"
#include "study/scenario.hpp"

namespace stratagem::commands {

/// Adds `--set KEY=VALUE`.
void add_settings(Options& options);

/// Adds `--price N`, which sets the clusters' price_per_gpu_hour.
void add_price(Options& options);

/// What `--price`, `--set`, and `--grid` where a command has it, say.
std::vector<study::KeyValues> settings_of(const Arguments& asked);

/// The scenario of the command line, with what these two change of it.
study::Scenario changed_scenario(const Arguments& asked);

/// `--run NAME`, or the first. Throws UsageError for a name that no run has.
const study::Run& chosen_run(const study::Scenario& scenario, const Arguments& asked);

/// All that the runs of a scenario were read from: no output may take the place of one.
std::vector<std::string> files_of(const study::Scenario& scenario);

}  // namespace stratagem::commands

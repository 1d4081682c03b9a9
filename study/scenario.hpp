// Reads a scenario file into the runs to compare.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/reading/changes.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// Reads and checks a whole scenario. A run whose settings cannot go together is refused by itself.
/// For all other errors it throws InputError before anything is simulated: no JSON, an unknown key,
/// a missing file.
/// Profiles and stacks are files in `profiles/` and `stacks/` beside the scenario, by name; a name
/// that ends in ".json" is a path, relative to the scenario.
/// With `instead` profiles are not read: that one stands in for all of them.
Scenario read_scenario(const std::string& file, const std::optional<cost::Profile>& instead = {});

/// The same with every variant of every run: its settings over the run's own, its suffix behind the
/// run's name; they are compared with the first variant of their baseline. Changed runs are others
/// than were measured: they have neither measured figures nor expectations, and what was set in all
/// of them is among what they assume.
Scenario read_scenario(const std::string& file, const std::vector<KeyValues>& changes);
Scenario read_scenario(const JsonReader& scenario, const std::vector<KeyValues>& changes);

/// The model of a run for so many samples, in fp16.
std::shared_ptr<const model::Graph> graph_of_batch(const Run& run, std::int64_t batch);

/// A run of settings, an object as in a scenario, over a scenario's defaults. Throws InputError for
/// what is wrong with the form of either; where settings cannot go together, Run::refused says so.
/// `resolved` is not set. Keys of the defaults that nobody asks for are for their owner to refuse.
Run run_over(const JsonReader& defaults, const Json& settings, const std::string& name);

/// The same with `resolved`, so that with_settings() takes it.
Run resolved_over(const JsonReader& defaults, const Json& settings, const std::string& name);

/// The files that settings name, after defaults: profile (if asked for), stack and what that stands
/// on, server and plan; also the scenario itself.
std::vector<std::string> files_named(const JsonReader& settings, bool with_profile = true);

/// A run with other settings: `changes` is an object as in a scenario, {"strategy": {...}}, laid
/// over the run's own. Throws InputError where the settings do not go together.
Run with_settings(const Run& run, const Json& changes);

}  // namespace stratagem::study

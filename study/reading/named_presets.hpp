// Models and clusters that a scenario names.
#pragma once

#include <string>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"

namespace stratagem::study {

/// The keys of a preset, and null for those that others of its family have: over a model they leave
/// nothing of it. Of a name that no preset has: it alone, for the reader to refuse.
Json model_alone(const std::string& preset);

/// `"model": "llama-3-8b"` stands for `"model": {"preset": "llama-3-8b"}`, and so does a cluster's
/// name, in the defaults and in each run: the scenario with these names as objects. A model that a
/// run names is that model alone, whatever the defaults say of theirs.
JsonReader with_named_presets(const JsonReader& scenario);

}  // namespace stratagem::study

// Models and clusters that a scenario names.
#pragma once

#include "base/json_reader.hpp"

namespace stratagem::study {

/// `"model": "llama-3-8b"` stands for `"model": {"preset": "llama-3-8b"}`, and so does a cluster's
/// name, in the defaults and in each run: the scenario with these names as objects.
JsonReader with_named_presets(const JsonReader& scenario);

}  // namespace stratagem::study

// A scenario of one run from what files of other programs say.
#pragma once

#include <string>
#include <vector>

#include "imports/format.hpp"
#include "study/reading/changes.hpp"

namespace stratagem::imports {

/// Settings of several files as one: an object's key of a later one counts.
Settings merged(const std::vector<Settings>& files);

struct Imported {
  Json scenario;
  Settings settings;  ///< with what was assumed to make a whole run of it
};

/// A run `name` of the settings, `changes` over them. What a run needs and nobody says is assumed:
/// a micro-batch of 1, one for each data rank and stage, bf16, Adam, a DGX H100 and its GPU's
/// profile, as many GPUs as the degrees multiply to, and the first of the format's stacks whose
/// facts hold for the precision. Data ranks are those that the other degrees leave of the GPUs.
/// Throws InputError where that is no run.
Imported scenario_of(const Settings& settings, const std::vector<study::KeyValues>& changes,
                     const std::string& name);

}  // namespace stratagem::imports

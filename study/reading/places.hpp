// Where the keys of a scenario belong.
#pragma once

#include "base/json_reader.hpp"

namespace stratagem::study {

/// Throws InputError for a key of the scenario, of its defaults or of a run that nothing reads,
/// before what is missing instead is looked for; and for one that belongs into another object:
/// `/runs/0/training/tensor: expected this key in "strategy"`. Marks nothing as read.
void check_places(const JsonReader& scenario);

}  // namespace stratagem::study

// What a user may not have meant.
#pragma once

#include <string>
#include <vector>

#include "study/run.hpp"

namespace stratagem::study {

/// What a run asks for that is allowed and seldom meant, as `reader` says it: another GPU's
/// profile, servers without work, and defaults that change a preset of its own.
std::vector<std::string> remarks_on(const Run& run, const JsonReader& reader);

/// Keys of a run's own strategy that are set to something else than their defaults and are of no
/// use beside its other keys. Not among the remarks, since a search tries such keys.
std::vector<std::string> keys_of_no_use(const Run& run, const JsonReader& reader);

}  // namespace stratagem::study

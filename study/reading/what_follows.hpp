// What a scenario need not say, and what it must.
#pragma once

#include <cstddef>
#include <string>

#include "base/json_reader.hpp"

namespace stratagem::study {

/// A scenario's question; where it has none, the name of its file.
std::string question_of(const JsonReader& scenario);

/// A run of a scenario; one without a name is "run 1", "run 2" and so on, after its place.
JsonReader named_by_place(const JsonReader& run, std::size_t place);

/// A run, with its defaults below it, and what follows from it where it says nothing: the profile
/// of its cluster's GPU. Throws InputError for a cluster that is not known.
JsonReader with_what_follows(const JsonReader& run);

/// Throws MalformedInput for a run that lacks keys which nothing stands in for: all of them in one
/// line, with an example. What is missing beside unknown keys is for whoever reads the object to
/// say, who names those that were probably meant.
void check_complete(const JsonReader& run);

}  // namespace stratagem::study

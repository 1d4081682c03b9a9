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

/// A run that lies over its defaults; where it has no profile, with that of its cluster's GPU.
/// Throws InputError for a cluster that is not known.
JsonReader with_profile_of_gpu(const JsonReader& run);

/// Throws MalformedInput for a run that lacks keys which nothing stands in for. It names all of
/// them in one line, with an example. Where "training" has an unknown key, the code that reads it
/// tells what is missing, since it names the key that was probably meant.
void check_complete(const JsonReader& run);

}  // namespace stratagem::study

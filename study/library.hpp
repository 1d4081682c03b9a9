// Where profiles, stacks, servers and plans are found by their names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_reader.hpp"

namespace stratagem::study {

/// The folder with `profiles/`, `stacks/`, `nodes/` and `plans/` for scenarios that have none of
/// that name beside them: what use_library() was given; else the environment's STRATAGEM_LIBRARY;
/// else `share/stratagem` of the installed program or library; else `scenarios/` of the sources
/// that it was built from. Throws InputError where the first of these is no folder.
std::filesystem::path library();

/// Throws InputError if there is no such folder.
void use_library(const std::string& folder);

/// The names of the JSON files of a folder of the library, such as "profiles".
std::vector<std::string> names_in_library(const std::string& folder);

/// A file by its name, in `folder` beside the scenario or else in the library's, or by a path from
/// the scenario where it ends in ".json". Throws InputError where there is none.
std::string file_of(const JsonReader& name, const std::string& folder);

}  // namespace stratagem::study

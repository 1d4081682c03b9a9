// JSON schemas, which editors use, hold for what the readers accept.
#pragma once

#include <string>

namespace stratagem {

/// Checks a JSON file against a JSON schema (draft 7); throws InputError naming the first offending
/// path.
void check_schema(const std::string& file, const std::string& schema_file);

}  // namespace stratagem

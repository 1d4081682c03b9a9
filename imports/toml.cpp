// TOML by toml++.
#include <toml++/toml.h>

#include <sstream>

#include "base/input_error.hpp"
#include "imports/documents.hpp"

namespace stratagem::imports {

std::string json_of_toml(const std::string& text, const std::string& file) {
  try {
    std::ostringstream json;
    json << toml::json_formatter(toml::parse(text));
    return json.str();
  } catch (const toml::parse_error& error) {
    throw InputError(file, "/line " + std::to_string(error.source().begin.line), "TOML",
                     std::string(error.description()));
  }
}

}  // namespace stratagem::imports

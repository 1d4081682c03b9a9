// TOML and YAML documents as JSON, so that Said reads all three alike.
#pragma once

#include <string>

namespace stratagem::imports {

/// A TOML document, as one line of JSON. Throws InputError where it is none.
std::string json_of_toml(const std::string& text, const std::string& file);

/// A YAML document, likewise: all values as text, as they are written ("True" as "true"). Null says
/// nothing, nor does "???", a value that OmegaConf wants to be told. References of OmegaConf are
/// replaced by what they refer to: "${model.hidden_size}", "${.hidden_size}" to what stands beside
/// the value, "${multiply:4, ${.hidden_size}}" by the product. Others stay as they are written.
std::string json_of_yaml(const std::string& text, const std::string& file);

}  // namespace stratagem::imports

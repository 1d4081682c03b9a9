// Values that are words, by what they are here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "imports/format.hpp"
#include "imports/said.hpp"

namespace stratagem::imports {

/// The note that a value is none of the `known`. `instead` says what stands in for it.
Note unknown_value(const std::string& as_written, const std::string& value,
                   const std::vector<std::string>& known, const std::string& instead);

/// What a setting's value is here. Nothing where the setting is not there, or where the value is
/// not known, which is added to what is left out.
template <typename T>
std::optional<T> known_value(Said& said, const std::string& name,
                             const std::map<std::string, T>& known, const std::string& instead,
                             Settings& settings) {
  const std::optional<std::string> value = said.take(name);
  if (!value) return std::nullopt;
  if (const auto found = known.find(*value); found != known.end()) return found->second;
  std::vector<std::string> words;
  for (const auto& [word, ours] : known) words.push_back(word);
  settings.left_out.push_back(
      unknown_value(said.as_written(name + " " + *value), *value, words, instead));
  return std::nullopt;
}

}  // namespace stratagem::imports

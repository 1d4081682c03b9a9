// What an importer makes of a text, and members of JSON to compare.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "base/json_reader.hpp"
#include "imports/format.hpp"
#include "tests/catch.hpp"

namespace stratagem::imports {

/// By the format that knows the text.
inline Settings read(const std::string& text) {
  const auto format =
      std::ranges::find_if(formats(), [&](const Format& one) { return one.is(text); });
  REQUIRE(format != formats().end());
  return format->read(text, "test");
}

/// Its members, in whatever order.
inline std::map<std::string, std::string> members(const JsonReader& object) {
  std::map<std::string, std::string> all;
  for (const std::string& key : object.keys()) all[key] = object.at(key).dump();
  return all;
}

}  // namespace stratagem::imports

// What a file says beyond what its format takes from it.
#pragma once

#include <span>
#include <string_view>

#include "imports/format.hpp"
#include "imports/said.hpp"

namespace stratagem::imports {

/// What acts on time or memory, by a pattern of its name (`*` is any text), and why it is not in a
/// scenario.
struct Missing {
  std::string_view pattern;
  std::string_view why;
};

/// Adds what was not read to the settings' lists: what fits `no_matter` to that of such things, all
/// else to what is left out.
void sort_left(const Said& said, std::span<const std::string_view> no_matter,
               std::span<const Missing> missing, Settings& settings);

}  // namespace stratagem::imports

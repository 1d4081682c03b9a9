// Sorts the settings that no importer has read: without effect, or left out. Unknown ones are left
// out, since they may act.
#include "imports/sort.hpp"

#include <algorithm>

#include "base/pattern.hpp"

namespace stratagem::imports {

void sort_left(const Said& said, std::span<const std::string_view> no_matter,
               std::span<const Missing> missing, Settings& settings) {
  for (const Said::Value& one : said.left()) {
    const auto fits = [&](std::string_view pattern) { return matches(one.name, pattern); };
    if (std::ranges::any_of(no_matter, fits)) {
      settings.no_matter.push_back(one.text);
      continue;
    }
    const auto known = std::ranges::find_if(missing, fits, &Missing::pattern);
    const std::string meant = known == missing.end() ? said.slip_of(one) : "";
    settings.left_out.push_back({one.text, known != missing.end() ? std::string(known->why)
                                           : meant.empty()
                                               ? "not known here"
                                               : "not known here; did you mean " + meant + "?"});
  }
}

}  // namespace stratagem::imports

// Says which values are known, and which was probably meant.
#include "imports/known.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.hpp"

namespace stratagem::imports {

Note unknown_value(const std::string& as_written, const std::string& value,
                   const std::vector<std::string>& known, const std::string& instead) {
  return {as_written, fmt::format("known are {}{}; {}", fmt::join(known, ", "),
                                  did_you_mean(value, known, ""), instead)};
}

}  // namespace stratagem::imports

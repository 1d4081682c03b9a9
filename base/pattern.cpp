// Matches names against patterns.
#include "base/pattern.hpp"

#include <cstddef>

namespace stratagem {

bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*') {
    return !name.empty() && name.front() == pattern.front() &&
           matches(name.substr(1), pattern.substr(1));
  }
  for (std::size_t skipped = 0; skipped <= name.size(); ++skipped) {
    if (matches(name.substr(skipped), pattern.substr(1))) return true;
  }
  return false;
}

}  // namespace stratagem

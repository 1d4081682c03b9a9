// Writes numbers of copies.
#include "strategies/plan/copies.hpp"

namespace stratagem::strategies {

std::string to_text(const std::vector<int>& copies) {
  std::string text;
  for (const int n : copies) text += (text.empty() ? "" : "-") + std::to_string(n);
  return text;
}

}  // namespace stratagem::strategies

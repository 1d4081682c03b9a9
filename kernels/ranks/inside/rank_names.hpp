// Groups of ranks in messages.
#pragma once

#include <string>
#include <vector>

namespace stratagem::kernels {

/// "ranks 0, 2, 4" or, of many, "16 ranks from 0 to 30".
inline std::string name_of(const std::vector<int>& ranks) {
  if (ranks.size() > 8)
    return std::to_string(ranks.size()) + " ranks from " + std::to_string(ranks.front()) + " to " +
           std::to_string(ranks.back());
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return text;
}

}  // namespace stratagem::kernels

// How tests of replicated stages write numbers of copies.
#pragma once

#include <numeric>
#include <string>
#include <vector>

namespace stratagem {

using Numbers = std::vector<int>;

inline std::string list(const Numbers& numbers) {
  std::string text;
  for (const int n : numbers) text += (text.empty() ? "[" : ", ") + std::to_string(n);
  return text + "]";
}

inline int common_multiple(const Numbers& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 1,
                         [](int a, int b) { return std::lcm(a, b); });
}

}  // namespace stratagem

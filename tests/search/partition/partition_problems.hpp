// Random rows of layers, and all ways to cut them, for tests of searchers.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "search/partition/rows.hpp"
#include "search/partition/searcher.hpp"

namespace stratagem::search {

inline const Searcher& searcher(const std::string& name) {
  return *std::ranges::find(searchers(), name, &Searcher::name);
}

inline int chosen(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

/// Few enough to try everything. Numbers are small, so that many divisions are equally good and the
/// room forbids some.
inline Rows random_rows(std::mt19937& random, int rows) {
  Rows result{.room = Bytes{static_cast<double>(chosen(random, 20, 80))},
              .micro_batches = chosen(random, 1, 3) * 12};
  for (int row = 0; row < rows; ++row) {
    const auto bytes = [&](int most) {
      return Bytes{static_cast<double>(chosen(random, 0, most))};
    };
    result.rows.push_back({.layers = row == 0 || row == rows - 1 ? 0 : 1,
                           .time = chosen(random, 1, 9),
                           .at_steps = bytes(9),
                           .parameters = bytes(2),
                           .gradients = bytes(9),
                           .leaves = bytes(3),
                           .waits = bytes(3),
                           .rises = bytes(5),
                           .passes_on = bytes(3)});
  }
  return result;
}

/// Calls `act` with the end of each part, for every way to cut `total` into so many parts.
inline void each_cut(int total, int parts,
                     const std::function<void(const std::vector<int>&)>& act) {
  std::vector<int> ends;
  const std::function<void()> extend = [&] {
    const int from = ends.empty() ? 0 : ends.back();
    if (static_cast<int>(ends.size()) == parts) {
      if (from == total) act(ends);
      return;
    }
    for (int end = from + 1; end <= total; ++end) {
      ends.push_back(end);
      extend();
      ends.pop_back();
    }
  };
  extend();
}

}  // namespace stratagem::search

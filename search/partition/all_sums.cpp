// Chooses one number after another.
#include "search/partition/all_sums.hpp"

#include <numeric>
#include <string>

namespace stratagem::search {
namespace {

void extend(std::vector<int>& chosen, int left, const std::vector<int>& least, std::size_t most,
            std::vector<std::vector<int>>& all) {
  const std::size_t place = chosen.size();
  if (place + 1 == least.size()) {
    if (left < least[place]) return;
    if (all.size() == most) throw too_many_divisions(most);
    all.push_back(chosen);
    all.back().push_back(left);
    return;
  }
  const int others = std::accumulate(least.begin() + static_cast<int>(place) + 1, least.end(), 0);
  for (int number = least[place]; number + others <= left; ++number) {
    chosen.push_back(number);
    extend(chosen, left - number, least, most, all);
    chosen.pop_back();
  }
}

}  // namespace

InputError too_many_divisions(std::size_t most) {
  return {"", "", "a space of at most " + std::to_string(most) + " divisions", "more"};
}

std::vector<std::vector<int>> all_sums(int total, const std::vector<int>& least, std::size_t most) {
  std::vector<std::vector<int>> all;
  std::vector<int> chosen;
  if (!least.empty()) extend(chosen, total, least, most, all);
  return all;
}

}  // namespace stratagem::search

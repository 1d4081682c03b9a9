// Sorts a list that mixes a few ascending ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace stratagem {

/// Sorts by `<`. Splits the values into ascending lists, each value going to the first list that it
/// extends, then merges the lists in pairs: values times lists steps. Meant for events of a few
/// queues, each in the order of time. Of more than 16 lists it sorts as usual. Equal values may
/// change places.
template <typename T>
void sort_mixed(std::vector<T>& values) {
  constexpr std::size_t most = 16;
  std::vector<std::vector<T>> lists;
  for (const T& value : values) {
    const auto extends = [&](const std::vector<T>& list) { return !(value < list.back()); };
    auto list = std::ranges::find_if(lists, extends);
    if (list == lists.end()) list = lists.emplace(list);
    list->push_back(value);
    if (lists.size() > most) {
      std::ranges::sort(values);
      return;
    }
  }
  for (; lists.size() > 1; lists.resize((lists.size() + 1) / 2)) {
    for (std::size_t i = 0; i < lists.size(); i += 2) {
      std::vector<T> both = std::move(lists[i]);
      if (i + 1 < lists.size()) {
        const std::vector<T> one = std::exchange(both, {});
        both.reserve(one.size() + lists[i + 1].size());
        std::ranges::merge(one, lists[i + 1], std::back_inserter(both));
      }
      lists[i / 2] = std::move(both);
    }
  }
  if (!lists.empty()) values = std::move(lists.front());
}

}  // namespace stratagem

// Kahn's algorithm on events; finds one short cycle among the events that cannot be sorted.
#include "program/check/event_graph.hpp"

#include <algorithm>
#include <numeric>
#include <queue>

#include "base/input_error.hpp"

namespace stratagem::program {
namespace {

/// Values in lists by key, in the order in which they were given.
struct Lists {
  std::vector<int> first;  ///< one more than keys
  std::vector<int> values;
};

template <typename Key, typename Value>
Lists lists(int keys, std::size_t count, const Key& key, const Value& value) {
  Lists result{std::vector<int>(keys + 1, 0), std::vector<int>(count)};
  for (std::size_t i = 0; i < count; ++i) ++result.first[key(i) + 1];
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  std::vector<int> next(result.first.begin(), result.first.end() - 1);
  for (std::size_t i = 0; i < count; ++i) result.values[next[key(i)]++] = value(i);
  return result;
}

}  // namespace

UnionFind::UnionFind(int count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }

int UnionFind::root(int one) const {
  while (parent_[one] != one) one = parent_[one] = parent_[parent_[one]];
  return one;
}

void UnionFind::merge(int one, int other) {
  const int a = root(one);
  const int b = root(other);
  parent_[std::max(a, b)] = std::min(a, b);
}

/// By event. What never happens has predecessors that never do.
std::vector<int> EventGraph::event_levels() const {
  std::vector<int> event_of(count_);
  for (int i = 0; i < count_; ++i) event_of[i] = events_.root(i);
  std::vector<int> missing(count_, 0);
  for (const auto& [first, second] : edges_) ++missing[event_of[second]];
  const Lists after = lists(
      count_, edges_.size(), [&](std::size_t i) { return event_of[edges_[i].first]; },
      [&](std::size_t i) { return event_of[edges_[i].second]; });
  std::vector<int> ready, levels(count_, 0);
  for (int event = 0; event < count_; ++event) {
    if (missing[event] == 0) ready.push_back(event);  // or no event: it has no edges
  }
  while (!ready.empty()) {
    const int event = ready.back();
    ready.pop_back();
    for (int i = after.first[event]; i < after.first[event + 1]; ++i) {
      const int next = after.values[i];
      levels[next] = std::max(levels[next], levels[event] + 1);
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  for (int event = 0; event < count_; ++event) {
    if (missing[event] > 0) levels[event] = never;
  }
  return levels;
}

std::vector<int> EventGraph::levels() const {
  const std::vector<int> of_events = event_levels();
  std::vector<int> result(count_);
  for (int i = 0; i < count_; ++i) result[i] = of_events[events_.root(i)];
  return result;
}

std::vector<EventGraph::Edge> EventGraph::cycle() const {
  const std::vector<int> levels = event_levels();
  std::vector<bool> left(count_);
  std::transform(levels.begin(), levels.end(), left.begin(), [](int n) { return n == never; });
  int event = static_cast<int>(std::ranges::find(left, true) - left.begin());
  if (event == count_) return {};
  std::vector<int> before(count_, -1);
  for (const auto& [first, second] : edges_) {
    const int from = events_.root(first);
    if (left[from] && left[events_.root(second)]) before[events_.root(second)] = from;
  }
  for (int step = 0; step < count_; ++step) event = before[event];  // now surely on a cycle
  return shortest_through(event, left);
}

/// Breadth first, backwards.
std::vector<EventGraph::Edge> EventGraph::shortest_through(int event,
                                                           const std::vector<bool>& stuck) const {
  const Lists into = lists(
      count_, edges_.size(), [&](std::size_t i) { return events_.root(edges_[i].second); },
      [](std::size_t i) { return static_cast<int>(i); });
  std::vector<int> way(count_, -1);  // by event: its edge towards `event`
  std::queue<int> open({event});
  while (!open.empty()) {
    const int at = open.front();
    open.pop();
    for (int i = into.first[at]; i < into.first[at + 1]; ++i) {
      const int edge = into.values[i];
      const int from = events_.root(edges_[edge].first);
      if (!stuck[from] || way[from] >= 0) continue;
      way[from] = edge;
      if (from != event) {
        open.push(from);
        continue;
      }
      std::vector<Edge> result;
      do {
        const int next = result.empty() ? event : events_.root(result.back().second);
        result.push_back(edges_[way[next]]);
      } while (events_.root(result.back().second) != event);
      return result;
    }
  }
  throw BrokenPromise("what is stuck on a cycle comes back to itself");
}

}  // namespace stratagem::program

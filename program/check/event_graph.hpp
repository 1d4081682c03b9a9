// A graph of occurrences, with edges from earlier to later, in which several occurrences may be one
// event.
#pragma once

#include <utility>
#include <vector>

namespace stratagem::program {

/// Sets that grow together.
class UnionFind {
 public:
  explicit UnionFind(int count);
  [[nodiscard]] int root(int one) const;
  void merge(int one, int other);

 private:
  mutable std::vector<int> parent_;
};

/// Occurrences, some of which are one event: a rendezvous. Each edge says that its first occurrence
/// is before its second.
class EventGraph {
 public:
  using Edge = std::pair<int, int>;

  explicit EventGraph(int occurrences) : events_(occurrences), count_(occurrences) {}

  void before(int first, int second) { edges_.emplace_back(first, second); }
  void together(int one, int other) { events_.merge(one, other); }

  /// By occurrence: how many events of the longest way to its event are before it; `never` if it
  /// cannot happen.
  [[nodiscard]] std::vector<int> levels() const;
  static constexpr int never = -1;

  /// Edges that lead in a circle, each from the event to which the one before it leads; none where
  /// events can be ordered.
  [[nodiscard]] std::vector<Edge> cycle() const;

 private:
  [[nodiscard]] std::vector<int> event_levels() const;
  [[nodiscard]] std::vector<Edge> shortest_through(int event, const std::vector<bool>& stuck) const;

  UnionFind events_;
  int count_;
  std::vector<Edge> edges_;
};

}  // namespace stratagem::program

// Lists that are mixed come out as std::sort has them, few or many.
#include "base/sort_mixed.hpp"

#include <compare>
#include <random>

#include "tests/catch.hpp"

namespace stratagem::sort_mixed_test {
namespace {

struct Event {
  int when = 0;
  int number = 0;
  auto operator<=>(const Event&) const = default;
};

/// Each event is of a queue drawn at random, whose clock goes on.
std::vector<Event> events(std::mt19937& engine, int queues, int count) {
  std::vector<int> clocks(queues);
  std::vector<Event> result;
  for (int i = 0; i < count; ++i) {
    int& clock = clocks[engine() % clocks.size()];
    clock += static_cast<int>(engine() % 3);
    result.push_back({clock, i});
  }
  return result;
}

}  // namespace

TEST_CASE("events of some queues are sorted as by any sort") {
  std::mt19937 engine(7);
  for (const int queues : {1, 2, 3, 5, 16, 17, 40}) {
    for (const int count : {0, 1, 2, 50, 1000}) {
      std::vector<Event> mixed = events(engine, queues, count), sorted = mixed;
      std::ranges::sort(sorted);
      sort_mixed(mixed);
      CHECK(mixed == sorted);
    }
  }
}

TEST_CASE("what only falls is sorted, too") {
  std::vector<int> falling;
  for (int i = 100; i > 0; --i) falling.push_back(i / 2);
  std::vector<int> sorted = falling;
  std::ranges::sort(sorted);
  sort_mixed(falling);
  CHECK(falling == sorted);
}

}  // namespace stratagem::sort_mixed_test

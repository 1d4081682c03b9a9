// Every index once, whatever the number of threads.
#include "base/parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/memo.hpp"
#include "tests/catch.hpp"

namespace stratagem::parallel_test {

TEST_CASE("every index is worked on once, by as many threads as there are or fewer") {
  for (const int threads : {-1, 1, 2, 7, 200}) {
    std::vector<std::atomic<int>> done(100);
    for_each_index(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    for (const std::atomic<int>& times : done) CHECK(times == 1);
  }
  for_each_index(0, 4, [](std::size_t) { FAIL("there is no index"); });
}

TEST_CASE("of several errors the one of the lowest index is thrown, after all the others' work") {
  std::atomic<int> done = 0;
  const auto work = [&](std::size_t i) {
    if (i % 2 == 1) throw std::runtime_error(std::to_string(i));
    ++done;
  };
  CHECK_THROWS_WITH(for_each_index(20, 4, work), "1");
  CHECK(done == 10);
}

TEST_CASE("a memo makes what somebody holds, or what was among the last, once for each key") {
  Memo<int, std::string> memo(2);
  int made = 0;
  const auto of = [&](int key) {
    return memo.of(key, [&] { return ++made, std::to_string(key); });
  };
  const auto one = of(1);
  CHECK(of(1) == one);
  CHECK((*of(2) == "2" && *of(3) == "3" && *of(2) == "2" && made == 3));
  CHECK((*of(4) == "4" && *of(3) == "3" && made == 4));
  of(2);  // nobody holds it, and two were made since
  CHECK(made == 5);
  CHECK((of(1) == one && made == 5));
}

TEST_CASE("threads that ask a memo for the same get the same value") {
  Memo<std::size_t, std::size_t> memo(8);
  std::vector<std::size_t> values(200);
  std::atomic<int> made = 0;
  for_each_index(values.size(), 4, [&](std::size_t i) {
    values[i] = *memo.of(i % 5, [&] { return ++made, 10 * (i % 5); });
  });
  CHECK(made <= 4 * 5);  // each thread once
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == 10 * (i % 5));
}

}  // namespace stratagem::parallel_test

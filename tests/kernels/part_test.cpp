// Runs through parts of arrays.
#include "kernels/part.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::kernels::part_test {

namespace {

/// Every element's place in the whole, in the order of the part.
std::vector<std::int64_t> places(const Part& part, int& runs) {
  std::vector<std::int64_t> result;
  for_each_run(part, [&](std::int64_t here, std::int64_t there, std::int64_t length) {
    CHECK(here == static_cast<std::int64_t>(result.size()));
    for (std::int64_t i = 0; i < length; ++i) result.push_back(there + i);
    ++runs;
  });
  return result;
}

TEST_CASE("a part of every dimension, by index arithmetic") {
  const Part part{.whole = {3, 4, 5}, .begin = {1, 0, 2}, .extent = {2, 3, 2}};
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 1; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      for (std::int64_t k = 2; k < 4; ++k) expected.push_back((i * 4 + j) * 5 + k);
  int runs = 0;
  CHECK(places(part, runs) == expected);
  CHECK(runs == 6);
}

TEST_CASE("what lies side by side is one run") {
  int runs = 0;
  CHECK(places(whole_of({3, 4}), runs).size() == 12);
  CHECK(runs == 1);
  runs = 0;
  CHECK(places({.whole = {4, 5}, .begin = {2, 0}, .extent = {2, 5}}, runs).front() == 10);
  CHECK(runs == 1);
}

TEST_CASE("a number has one place, an empty part none") {
  int runs = 0;
  CHECK(places(whole_of({}), runs) == std::vector<std::int64_t>{0});
  CHECK(places({.whole = {4}, .begin = {2}, .extent = {0}}, runs).empty());
}

TEST_CASE("a part that reaches out of its whole is refused") {
  CHECK_THROWS_AS(for_each_run({.whole = {4}, .begin = {3}, .extent = {2}},
                               [](std::int64_t, std::int64_t, std::int64_t) {}),
                  stratagem::BrokenPromise);
}

}  // namespace

}  // namespace stratagem::kernels::part_test

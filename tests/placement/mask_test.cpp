// The arithmetic of masks, by rule and against an enumeration of elements and partial values.
#include "placement/mask.hpp"

#include <random>

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/placement/elements.hpp"

namespace stratagem::placement::mask_test {

namespace {

/// Common multiple of all counts below, so that every value part is a whole number of smallest
/// parts.
constexpr std::int64_t parts = 24;

class RandomMasks {
 public:
  Mask next() {
    Mask mask;
    for (const std::int64_t size : {5, 3}) {
      const std::int64_t begin = pick(0, size - 1);
      mask.ranges.push_back({begin, pick(begin + 1, size)});
    }
    const std::vector<std::int64_t> counts{1, 1, 2, 3, 4, 6};
    mask.value.count = counts[static_cast<std::size_t>(pick(0, 5))];
    mask.value.index = pick(0, mask.value.count - 1);
    return mask;
  }
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }

 private:
  std::mt19937 engine_{20240707};
};

}  // namespace

TEST_CASE("masks overlap exactly where they share an element and a part of its value") {
  RandomMasks masks;
  int overlapping = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Mask a = masks.next();
    const Mask b = masks.next();
    const bool shared = !common(seen_by(a, parts), seen_by(b, parts)).empty();
    overlapping += shared ? 1 : 0;
    if (overlap(a, b) != shared || overlap(b, a) != shared) FAIL("trial " << trial);
  }
  CHECK(overlapping > 400);
  CHECK(overlapping < 3600);
}

TEST_CASE("splitting a dimension gives equal parts in the whole tensor's coordinates") {
  // The second third of [0, 12) is [4, 8), of which the first half is [4, 6).
  const Mask all = whole({12, 5});
  const Mask third = split(all, 0, 1, 3);
  CHECK(third.ranges == std::vector<Range>{{4, 8}, {0, 5}});
  CHECK(split(third, 0, 0, 2).ranges == std::vector<Range>{{4, 6}, {0, 5}});
}

TEST_CASE("a dimension is not split into uneven parts") {
  CHECK_THROWS_AS(split(whole({12, 5}), 1, 0, 2), BrokenPromise);
  CHECK_THROWS_AS(split(whole({12, 5}), 0, 0, 0), BrokenPromise);
}

TEST_CASE("an uneven split gives the remainder to the first parts, in whole units") {
  const Mask row = whole({10});
  const auto part = [&](std::int64_t i, std::int64_t n, std::int64_t unit) {
    return split_unevenly(row, 0, i, n, unit).ranges[0];
  };
  CHECK(part(0, 3, 1) == Range{0, 4});  // 10 = 4 + 3 + 3
  CHECK(part(1, 3, 1) == Range{4, 7});
  CHECK(part(2, 3, 1) == Range{7, 10});
  CHECK(part(0, 3, 2) == Range{0, 4});  // 5 units = 2 + 2 + 1
  CHECK(part(1, 3, 2) == Range{4, 8});
  CHECK(part(2, 3, 2) == Range{8, 10});
  CHECK(part(1, 2, 1) == split(row, 0, 1, 2).ranges[0]);
  CHECK_THROWS_AS(part(0, 6, 2), BrokenPromise);  // five units
}

}  // namespace stratagem::placement::mask_test

// Random numbers by place: known answers, and dropout that no division of a tensor changes.
#include "kernels/dropout.hpp"

#include <numeric>

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::dropout_test {

namespace {

// Random123's kat_vectors, philox4x32 with 10 rounds.
TEST_CASE("Philox gives its published answers") {
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a share of the elements is dropped, the others keep the sum") {
  const std::int64_t size = 1 << 20;
  const std::vector<float> x(size, 1);
  std::vector<float> y(size);
  std::vector<std::int8_t> mask(size);
  dropout<float>(whole_of({size}), 0.1, {.seed = 1, .stream = 2}, x, y, mask);
  const double kept = std::accumulate(mask.begin(), mask.end(), 0.0) / size;
  // Binomial: one standard deviation of the share is sqrt(0.09 / 2^20) = 0.0003; five of them.
  CHECK(std::abs(kept - 0.9) < 5 * std::sqrt(0.09 / size));
  for (std::int64_t i = 0; i < size; ++i) CHECK_FALSE((y[i] != 0) != (mask[i] == 1));
  CHECK(std::accumulate(y.begin(), y.end(), 0.0) / size == Approx(kept / 0.9));
}

TEST_CASE("nothing is dropped with probability 0") {
  const auto x = random_operand<float>(100, 1);
  std::vector<float> y(100);
  std::vector<std::int8_t> mask(100);
  dropout<float>(whole_of({100}), 0, {}, x, y, mask);
  CHECK(y == x);
}

TEST_CASE("parts of a tensor drop what the whole drops") {
  const std::vector<std::int64_t> sizes = {4, 6, 5};
  const auto x = random_operand<double>(120, 1);
  std::vector<double> y(120);
  std::vector<std::int8_t> mask(120);
  const RandomStream random{.seed = 7, .stream = 9};
  dropout<double>(whole_of(sizes), 0.5, random, x, y, mask);
  const Part part{.whole = sizes, .begin = {1, 2, 0}, .extent = {2, 3, 5}};
  std::vector<double> part_x, part_y(30), expected;
  std::vector<std::int8_t> part_mask(30);
  for_each_run(part, [&](std::int64_t, std::int64_t there, std::int64_t length) {
    part_x.insert(part_x.end(), x.begin() + there, x.begin() + there + length);
    expected.insert(expected.end(), y.begin() + there, y.begin() + there + length);
  });
  dropout<double>(part, 0.5, random, part_x, part_y, part_mask);
  CHECK(part_y == expected);
}

TEST_CASE("other streams and seeds drop other elements") {
  const std::vector<float> x(256, 1);
  const auto masks = [&](const RandomStream& random) {
    std::vector<float> y(256);
    std::vector<std::int8_t> mask(256);
    dropout<float>(whole_of({256}), 0.5, random, x, y, mask);
    return mask;
  };
  CHECK(masks({.seed = 1}) != masks({.seed = 2}));
  CHECK(masks({.seed = 1, .stream = 1}) != masks({.seed = 1, .stream = 2}));
  CHECK(masks({.seed = 1}) == masks({.seed = 1}));
}

TEST_CASE("the gradient passes where elements were kept") {
  std::vector<double> dx(3);
  dropout_gradient<double>(0.5, std::vector<double>{1, 2, 3}, std::vector<std::int8_t>{1, 0, 1},
                           dx);
  CHECK(dx == std::vector<double>{2, 0, 6});
}

}  // namespace

}  // namespace stratagem::kernels::dropout_test

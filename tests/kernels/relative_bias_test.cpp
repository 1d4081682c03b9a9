// Biases by distance: borders of the buckets from their formula, parts that are those of the whole,
// and the gradient by differences.
#include "kernels/relative_bias.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::relative_bias_test {
namespace {

TEST_CASE("32 buckets in both directions: 8 exact ones, then 8 up to 128, for either side") {
  const DistanceBuckets buckets{.count = 32, .both_directions = true};
  // Beyond 8: 8 + floor(8 log(d / 8) / log 16), which is 8, 10, 12, 14 at 8, 16, 32, 64.
  const std::vector<std::pair<std::int64_t, std::int64_t>> known = {
      {0, 0},   {1, 1},   {7, 7},    {8, 8},    {11, 8},   {12, 9},
      {15, 9},  {16, 10}, {31, 11},  {32, 12},  {63, 13},  {64, 14},
      {90, 14}, {91, 15}, {127, 15}, {128, 15}, {129, 15}, {100'000, 15}};
  for (const auto& [distance, bucket] : known) {
    INFO(distance);
    CHECK(bucket_of(buckets, 200'000, 200'000 - distance) == bucket);
    if (distance > 0) CHECK(bucket_of(buckets, 5, 5 + distance) == 16 + bucket);
  }
}

TEST_CASE(
    "32 buckets that look back: 16 exact ones, then 16 up to 128, and keys ahead are in the "
    "first") {
  const DistanceBuckets buckets{.count = 32, .both_directions = false};
  // Beyond 16: 16 + floor(16 log(d / 16) / log 8); 8 = 2^3, so d = 32 gives 16 + floor(16 / 3).
  const std::vector<std::pair<std::int64_t, std::int64_t>> known = {
      {0, 0}, {15, 15}, {16, 16}, {31, 21}, {32, 21}, {64, 26}, {127, 31}, {128, 31}, {5000, 31}};
  for (const auto& [distance, bucket] : known) {
    INFO(distance);
    CHECK(bucket_of(buckets, 6000, 6000 - distance) == bucket);
  }
  CHECK(bucket_of(buckets, 3, 4) == 0);
  CHECK(bucket_of(buckets, 3, 400) == 0);
}

TEST_CASE(
    "buckets that do not come in fours, or are more than distances are told apart, are refused") {
  CHECK_THROWS_AS(bucket_of({.count = 6, .both_directions = true}, 0, 0), BrokenPromise);
  CHECK(bucket_of({.count = 252, .both_directions = false}, 1 << 20, 0) == 251);
  CHECK_THROWS_AS(bucket_of({.count = 256, .both_directions = false}, 1 << 20, 0), BrokenPromise);
}

TEST_CASE("a part of the queries has the biases that it has in the whole") {
  const DistanceBuckets buckets{.count = 8, .both_directions = true};
  const std::vector<double> table = random_operand<double>(8 * 3, 1);
  std::vector<double> whole(3 * 10 * 10), part(3 * 4 * 7);
  relative_bias<double>({.heads = 3, .queries = 10, .keys = 10}, buckets, table, whole);
  relative_bias<double>({.heads = 3, .queries = 4, .keys = 7, .first_query = 5, .first_key = 2},
                        buckets, table, part);
  for (int head = 0; head < 3; ++head) {
    for (int q = 0; q < 4; ++q) {
      for (int k = 0; k < 7; ++k)
        CHECK(part[(head * 4 + q) * 7 + k] == whole[(head * 10 + q + 5) * 10 + k + 2]);
    }
  }
}

TEST_CASE("the gradient of a table of biases is that of differences, and is added") {
  const Pairs pairs{.heads = 2, .queries = 5, .keys = 6, .first_query = 3};
  const DistanceBuckets buckets{.count = 8, .both_directions = GENERATE(true, false)};
  const std::vector<double> table = random_operand<double>(16, 1),
                            dy = random_operand<double>(60, 2);
  const std::vector<double> expected = finite_differences(table, [&](const std::vector<double>& x) {
    std::vector<double> y(60);
    relative_bias<double>(pairs, buckets, x, y);
    return weighted_sum(y, dy);
  });
  std::vector<double> gradient(16);
  relative_bias_gradient<double>(pairs, buckets, dy, gradient);
  CHECK(relative_error(gradient, expected) < 1e-8);
  relative_bias_gradient<double>(pairs, buckets, dy, gradient);
  for (std::size_t i = 0; i < 16; ++i) CHECK(gradient[i] == Approx(2 * expected[i]).margin(1e-8));
}

}  // namespace
}  // namespace stratagem::kernels::relative_bias_test

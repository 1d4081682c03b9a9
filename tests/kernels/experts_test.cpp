// Mixtures of experts: slots by hand, experts in parts, and gradients by differences.
#include "kernels/experts.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::experts_test {
namespace {

/// Two samples of five tokens, two of three experts each, three slots an expert: not enough.
constexpr ExpertSlots small{.samples = 2, .tokens = 5, .choices = 2, .experts = 3, .capacity = 3};
constexpr std::int64_t width = 4, rows_size = 2 * 5 * width, contents_size = 3 * 2 * 3 * width;

std::vector<double> chosen() {
  std::vector<double> slots(2 * 5 * 2);
  choose_slots<double>(small, random_operand<double>(2 * 5 * 3, 1), slots);
  return slots;
}

TEST_CASE("first choices come before second ones, in the order of tokens, sample by sample") {
  const ExpertSlots shape{.samples = 2, .tokens = 3, .choices = 2, .experts = 3, .capacity = 2};
  const std::vector<double> weights = {.6, .3, .1, .5, .1, .4, .7, .2, .1,   // 0 1, 0 2, 0 1
                                       .1, .2, .7, .2, .5, .3, .4, .2, .4};  // 2 1, 1 2, 0 2
  std::vector<double> slots(12);
  choose_slots<double>(shape, weights, slots);
  // Expert e has slots 2e and 2e + 1; the third first choice of expert 0 finds none.
  CHECK(slots == std::vector<double>{0, 2, 1, 4, -1, 3, 4, 3, 2, 5, 0, -1});
}

TEST_CASE("as many slots as tokens: nobody is left out, and what comes back is the weighted sum") {
  ExpertSlots shape = small;
  shape.capacity = 5;
  const std::vector<double> weights = random_operand<double>(2 * 5 * 3, 1);
  const std::vector<double> rows = random_operand<double>(rows_size, 2);
  std::vector<double> slots(20), contents(3 * 2 * 5 * width), back(rows_size);
  choose_slots<double>(shape, weights, slots);
  to_slots<double>(shape, slots, rows, {}, contents);
  from_slots<double>(shape, slots, contents, weights, back);
  for (std::size_t token = 0; token < 10; ++token) {
    const double* w = &weights[token * 3];
    const double two_largest = w[0] + w[1] + w[2] - std::min({w[0], w[1], w[2]});
    for (std::size_t i = token * width; i < (token + 1) * width; ++i)
      CHECK(back[i] == Approx(two_largest * rows[i]));
  }
}

TEST_CASE("sums over parts of the experts are those over all") {
  const std::vector<double> slots = chosen(), weights = random_operand<double>(2 * 5 * 3, 1);
  const std::vector<double> contents = random_operand<double>(contents_size, 3);
  std::vector<double> whole(rows_size), sum(rows_size);
  from_slots<double>(small, slots, contents, weights, whole);
  for (std::int64_t expert = 0; expert < 3; ++expert) {
    ExpertSlots part = small;
    part.experts = 1;
    part.first_expert = expert;
    std::vector<double> own, rows(rows_size);
    for (std::size_t token = 0; token < 10; ++token) own.push_back(weights[token * 3 + expert]);
    const In<double> here = In<double>(contents).subspan(expert * contents_size / 3);
    from_slots<double>(part, slots, here.first(contents_size / 3), own, rows);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rows[i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i) CHECK(sum[i] == Approx(whole[i]).margin(1e-14));
}

TEST_CASE("gradients of what goes to slots and comes back are those of differences") {
  const std::vector<double> slots = chosen(), weights = random_operand<double>(2 * 5 * 3, 1);
  const std::vector<double> rows = random_operand<double>(rows_size, 2);
  const std::vector<double> contents = random_operand<double>(contents_size, 3);
  const std::vector<double> drows = random_operand<double>(rows_size, 4);
  const auto back = [&](const std::vector<double>& filled, const std::vector<double>& with) {
    std::vector<double> y(rows_size);
    from_slots<double>(small, slots, filled, with, y);
    return weighted_sum(y, drows);
  };
  std::vector<double> dcontents(contents_size), dweights(weights.size()), gone(rows_size);
  to_slots<double>(small, slots, drows, weights, dcontents);
  CHECK(relative_error(dcontents, finite_differences(contents, [&](const std::vector<double>& x) {
                         return back(x, weights);
                       })) < 1e-8);
  slot_weights_gradient<double>(small, slots, drows, contents, dweights);
  CHECK(relative_error(dweights, finite_differences(weights, [&](const std::vector<double>& x) {
                         return back(contents, x);
                       })) < 1e-8);
  from_slots<double>(small, slots, contents, {}, gone);
  CHECK(relative_error(gone, finite_differences(rows, [&](const std::vector<double>& x) {
                         std::vector<double> y(contents_size);
                         to_slots<double>(small, slots, x, {}, y);
                         return weighted_sum(y, contents);
                       })) < 1e-8);
}

}  // namespace
}  // namespace stratagem::kernels::experts_test

// Cross-entropy: -log of the label's probability, in one piece and over parts of the vocabulary.
#include "kernels/cross_entropy.hpp"

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::cross_entropy_test {

namespace {

/// All steps over some columns [first, first + columns) of logits of `all` columns, given the
/// maxima and sums of the other parts.
struct Steps {
  Rows shape;
  std::int64_t first = 0;
  std::vector<double> x, maximum, exponentials, sum, picked;
};

Steps begin(const Rows& shape, std::int64_t first, const std::vector<double>& x) {
  Steps s{.shape = shape, .first = first, .x = x};
  s.maximum = s.sum = s.picked = zeros<double>(shape.rows);
  s.exponentials = zeros<double>(shape.size());
  row_maximum<double>(shape, x, s.maximum);
  return s;
}

void finish(Steps& s, const std::vector<std::int64_t>& labels) {
  exponential<double>(s.shape, s.x, s.maximum, s.exponentials);
  row_sums<double>(s.shape, s.exponentials, s.sum);
  pick<double>(s.shape, s.first, s.x, labels, s.picked);
}

std::vector<double> losses(const Rows& shape, const std::vector<double>& x,
                           const std::vector<std::int64_t>& labels) {
  Steps s = begin(shape, 0, x);
  finish(s, labels);
  std::vector<double> loss(shape.rows);
  cross_entropy<double>(s.maximum, s.sum, s.picked, loss);
  return loss;
}

TEST_CASE("equal logits lose log(n), however large they are") {
  for (const double logit : {0.0, 1e4, -1e4}) {
    const auto loss = losses({1, 8}, std::vector<double>(8, logit), {3});
    CHECK(loss[0] == Approx(std::log(8.0)));
  }
}

TEST_CASE("the gradient agrees with finite differences") {
  const Rows shape{3, 5};
  const std::vector<std::int64_t> labels = {4, 0, 2};
  const auto x = random_operand<double>(shape.size(), 1), dloss = random_operand<double>(3, 2);
  Steps s = begin(shape, 0, x);
  finish(s, labels);
  std::vector<double> dx(shape.size());
  cross_entropy_gradient<double>(shape, 0, dloss, s.exponentials, s.sum, labels, dx);
  CHECK(relative_error(dx, finite_differences(x, [&](const auto& at) {
                         return weighted_sum(losses(shape, at, labels), dloss);
                       })) < 1e-8);
}

TEST_CASE("two halves of the vocabulary, combined by maximum and sum, are the whole") {
  const Rows whole{3, 6}, half{3, 3};
  const std::vector<std::int64_t> labels = {5, 1, 3};
  const auto x = random_operand<double>(whole.size(), 1);
  std::vector<Steps> parts;
  for (const std::int64_t first : {0, 3}) {
    std::vector<double> columns;
    for (std::int64_t i = 0; i < 3; ++i)
      columns.insert(columns.end(), x.begin() + 6 * i + first, x.begin() + 6 * i + first + 3);
    parts.push_back(begin(half, first, columns));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double largest = std::max(parts[0].maximum[i], parts[1].maximum[i]);
    parts[0].maximum[i] = parts[1].maximum[i] = largest;
  }
  for (Steps& part : parts) finish(part, labels);
  std::vector<double> sum(3), picked(3), loss(3), dx(9), whole_dx(18);
  for (std::size_t i = 0; i < 3; ++i) {
    sum[i] = parts[0].sum[i] + parts[1].sum[i];
    picked[i] = parts[0].picked[i] + parts[1].picked[i];
  }
  cross_entropy<double>(parts[0].maximum, sum, picked, loss);
  CHECK(relative_error(loss, losses(whole, x, labels)) < 1e-14);

  Steps all = begin(whole, 0, x);
  finish(all, labels);
  const std::vector<double> dloss = {1, -2, 0.5};
  cross_entropy_gradient<double>(whole, 0, dloss, all.exponentials, all.sum, labels, whole_dx);
  cross_entropy_gradient<double>(half, 3, dloss, parts[1].exponentials, sum, labels, dx);
  for (std::size_t i = 0; i < 9; ++i) CHECK(dx[i] == Approx(whole_dx[i / 3 * 6 + 3 + i % 3]));
}

TEST_CASE("the steps in fp32 agree with fp64 on awkward shapes") {
  for (const Rows& shape : awkward_rows) {
    std::vector<float> maximum(shape.rows), y(shape.size()), sum(shape.rows);
    const auto x = random_operand<float>(shape.size(), 1);
    row_maximum<float>(shape, x, maximum);
    exponential<float>(shape, x, maximum, y);
    row_sums<float>(shape, y, sum);
    Steps s = begin(shape, 0, random_operand<double>(shape.size(), 1));
    finish(s, std::vector<std::int64_t>(shape.rows, 0));
    CHECK(relative_error(y, s.exponentials) < fp32_error);
    CHECK(relative_error(sum, s.sum) < fp32_error);
  }
}

}  // namespace

}  // namespace stratagem::kernels::cross_entropy_test

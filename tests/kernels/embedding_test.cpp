// Lookups in a whole table and in its parts.
#include "kernels/embedding.hpp"

#include "kernels/elementwise.hpp"
#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::embedding_test {

namespace {

const std::vector<std::int64_t> tokens = {2, 0, 2, 3};

TEST_CASE("tokens pick rows, and rows gather what their tokens receive") {
  const std::vector<double> table = {0, 1, 10, 11, 20, 21, 30, 31};
  std::vector<double> y(8);
  embedding<double>(2, 0, tokens, table, y);
  CHECK(y == std::vector<double>{20, 21, 0, 1, 20, 21, 30, 31});
  std::vector<double> dtable(8, 100);  // adds to what is there
  embedding_gradient<double>(2, 0, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}, tokens, dtable);
  CHECK(dtable == std::vector<double>{103, 104, 100, 100, 106, 108, 107, 108});
}

TEST_CASE("parts of the vocabulary add up to the whole") {
  const std::int64_t width = 3;
  const auto table = random_operand<double>(4 * width, 1);
  std::vector<double> whole(12), upper(12), lower(12), sum(12);
  embedding<double>(width, 0, tokens, table, whole);
  embedding<double>(width, 0, tokens, std::span(table).first(2 * width), upper);
  embedding<double>(width, 2, tokens, std::span(table).last(2 * width), lower);
  add<double>(upper, lower, sum);
  CHECK(sum == whole);
}

TEST_CASE("the gradient of a table agrees with finite differences") {
  const auto table = random_operand<double>(12, 1), dy = random_operand<double>(12, 2);
  std::vector<double> gradient(12);
  embedding_gradient<double>(3, 0, dy, tokens, gradient);
  CHECK(relative_error(gradient, finite_differences(table, [&](const auto& at) {
                         std::vector<double> y(12);
                         embedding<double>(3, 0, tokens, at, y);
                         return weighted_sum(y, dy);
                       })) < 1e-9);
}

}  // namespace

}  // namespace stratagem::kernels::embedding_test

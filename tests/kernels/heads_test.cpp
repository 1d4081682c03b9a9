// Heads are copied there and back.
#include "kernels/heads.hpp"

#include "tests/kernels/operands.hpp"

namespace stratagem::kernels::heads_test {

namespace {

TEST_CASE("two tokens of two heads of one element, by hand") {
  // By token: head 0's q k v, then head 1's.
  const std::vector<double> qkv = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<double> q(4), k(4), v(4), back(12);
  const Heads shape{.batch = 1, .sequence = 2, .heads = 2, .size = 1};
  split_heads<double>(shape, qkv, q, k, v);
  CHECK(q == std::vector<double>{1, 7, 4, 10});
  CHECK(k == std::vector<double>{2, 8, 5, 11});
  CHECK(v == std::vector<double>{3, 9, 6, 12});
  split_heads_gradient<double>(shape, q, k, v, back);
  CHECK(back == qkv);
  std::vector<double> merged(4);
  merge_heads<double>(shape, q, merged);
  CHECK(merged == std::vector<double>{1, 4, 7, 10});
}

TEST_CASE("merging heads and its gradient undo each other") {
  const Heads shape{.batch = 2, .sequence = 5, .heads = 3, .size = 7};
  const auto x = random_operand<float>(shape.elements(), 1);
  std::vector<float> merged(x.size()), back(x.size());
  merge_heads<float>(shape, x, merged);
  merge_heads_gradient<float>(shape, merged, back);
  CHECK(back == x);
}

}  // namespace

}  // namespace stratagem::kernels::heads_test

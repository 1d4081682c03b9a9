// Copies of heads: every stretch of `size` elements stays in one piece.
#include "kernels/heads.hpp"

#include <algorithm>

namespace stratagem::kernels {
namespace {

/// Calls `copy(by_token, by_head)` with the places of every token's piece of every head, counted in
/// pieces.
template <typename Copy>
void for_each_piece(const Heads& h, const Copy& copy) {
  for (std::int64_t b = 0; b < h.batch; ++b) {
    for (std::int64_t head = 0; head < h.heads; ++head) {
      for (std::int64_t s = 0; s < h.sequence; ++s)
        copy((b * h.sequence + s) * h.heads + head, (b * h.heads + head) * h.sequence + s);
    }
  }
}

template <typename T>
void copy_piece(const Heads& h, In<T> from, std::int64_t source, Out<T> to, std::int64_t target) {
  std::copy_n(from.data() + source * h.size, h.size, to.data() + target * h.size);
}

}  // namespace

template <typename T>
void split_heads(const Heads& h, In<T> qkv, Out<T> q, Out<T> k, Out<T> v) {
  expect_size(3 * h.elements(), qkv);
  expect_size(h.elements(), q, k, v);
  for_each_piece(h, [&](std::int64_t by_token, std::int64_t by_head) {
    copy_piece(h, qkv, 3 * by_token, q, by_head);
    copy_piece(h, qkv, 3 * by_token + 1, k, by_head);
    copy_piece(h, qkv, 3 * by_token + 2, v, by_head);
  });
}

template <typename T>
void split_heads_gradient(const Heads& h, In<T> dq, In<T> dk, In<T> dv, Out<T> dqkv) {
  expect_size(3 * h.elements(), dqkv);
  expect_size(h.elements(), dq, dk, dv);
  for_each_piece(h, [&](std::int64_t by_token, std::int64_t by_head) {
    copy_piece(h, dq, by_head, dqkv, 3 * by_token);
    copy_piece(h, dk, by_head, dqkv, 3 * by_token + 1);
    copy_piece(h, dv, by_head, dqkv, 3 * by_token + 2);
  });
}

template <typename T>
void merge_heads(const Heads& h, In<T> x, Out<T> y) {
  expect_size(h.elements(), x, y);
  for_each_piece(h, [&](std::int64_t by_token, std::int64_t by_head) {
    copy_piece(h, x, by_head, y, by_token);
  });
}

template <typename T>
void merge_heads_gradient(const Heads& h, In<T> dy, Out<T> dx) {
  expect_size(h.elements(), dy, dx);
  for_each_piece(h, [&](std::int64_t by_token, std::int64_t by_head) {
    copy_piece(h, dy, by_token, dx, by_head);
  });
}

#define INSTANTIATE(T)                                                              \
  template void split_heads<T>(const Heads&, In<T>, Out<T>, Out<T>, Out<T>);        \
  template void split_heads_gradient<T>(const Heads&, In<T>, In<T>, In<T>, Out<T>); \
  template void merge_heads<T>(const Heads&, In<T>, Out<T>);                        \
  template void merge_heads_gradient<T>(const Heads&, In<T>, Out<T>);
STRATAGEM_FOR_ELEMENTS(INSTANTIATE)

}  // namespace stratagem::kernels

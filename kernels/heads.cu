// Copies of heads on a GPU: a block has a token of a sequence, and its threads all of its heads.
#include "kernels/heads.hpp"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/row.cuh"

namespace stratagem::kernels {
namespace {

/// What lies by head, up to three arrays of (batch, heads, sequence, size), side by side by token.
template <typename T>
struct ByHead {
  T* arrays[3];
  int count;
};

/// From (batch, heads, sequence, size) each to (batch, sequence, heads, arrays, size), or back.
template <bool to_tokens, typename T>
__global__ void copy_kernel(Heads h, bool in_packets, ByHead<T> by_head, T* by_token) {
  const std::int64_t token = blockIdx.x, batch = token / h.sequence, place = token % h.sequence;
  const std::int64_t width = h.heads * by_head.count * h.size;
  for_columns<T>(width, in_packets, [&](auto count, std::int64_t column) {
    const auto piece = static_cast<int>(column / h.size);
    const std::int64_t head = piece / by_head.count;
    T* const there = by_head.arrays[piece % by_head.count] +
                     ((batch * h.heads + head) * h.sequence + place) * h.size + column % h.size;
    T* const here = by_token + token * width + column;
    if constexpr (to_tokens)
      store(load<count()>(static_cast<const T*>(there)), here);
    else
      store(load<count()>(static_cast<const T*>(here)), there);
  });
}

template <bool to_tokens, typename T>
void copy_heads(const Stream& stream, const Heads& h, const ByHead<T>& by_head, T* by_token) {
  if (h.elements() == 0) return;
  // A packet lies within a head where heads are whole packets.
  const Rows shape{h.batch * h.sequence, h.heads * by_head.count * h.size};
  RowLaunch launch =
      row_launch<T>(shape, by_head.arrays[0], by_head.arrays[1], by_head.arrays[2], by_token);
  launch.in_packets = launch.in_packets && h.size % packet_size<T> == 0;
  start_kernel(stream, &copy_kernel<to_tokens, T>, launch.grid, h, launch.in_packets, by_head,
               by_token);
}

/// Nothing of an operand that is only read is written.
template <typename T>
T* readable(DeviceIn<T> x) {
  return const_cast<T*>(x.data());
}

}  // namespace

template <typename T>
void split_heads(const Stream& stream, const Heads& h, DeviceIn<T> qkv, DeviceOut<T> q,
                 DeviceOut<T> k, DeviceOut<T> v) {
  expect_type<T>(stream);
  expect_size(3 * h.elements(), qkv);
  expect_size(h.elements(), q, k, v);
  copy_heads<false>(stream, h, ByHead<T>{{q.data(), k.data(), v.data()}, 3}, readable<T>(qkv));
}

template <typename T>
void split_heads_gradient(const Stream& stream, const Heads& h, DeviceIn<T> dq, DeviceIn<T> dk,
                          DeviceIn<T> dv, DeviceOut<T> dqkv) {
  expect_type<T>(stream);
  expect_size(3 * h.elements(), dqkv);
  expect_size(h.elements(), dq, dk, dv);
  copy_heads<true>(stream, h, ByHead<T>{{readable<T>(dq), readable<T>(dk), readable<T>(dv)}, 3},
                   dqkv.data());
}

template <typename T>
void merge_heads(const Stream& stream, const Heads& h, DeviceIn<T> x, DeviceOut<T> y) {
  expect_type<T>(stream);
  expect_size(h.elements(), x, y);
  copy_heads<true>(stream, h, ByHead<T>{{readable<T>(x), nullptr, nullptr}, 1}, y.data());
}

template <typename T>
void merge_heads_gradient(const Stream& stream, const Heads& h, DeviceIn<T> dy, DeviceOut<T> dx) {
  expect_type<T>(stream);
  expect_size(h.elements(), dy, dx);
  copy_heads<false>(stream, h, ByHead<T>{{dx.data(), nullptr, nullptr}, 1}, readable<T>(dy));
}

#define INSTANTIATE(T)                                                                         \
  template void split_heads<T>(const Stream&, const Heads&, DeviceIn<T>, DeviceOut<T>,         \
                               DeviceOut<T>, DeviceOut<T>);                                    \
  template void split_heads_gradient<T>(const Stream&, const Heads&, DeviceIn<T>, DeviceIn<T>, \
                                        DeviceIn<T>, DeviceOut<T>);                            \
  template void merge_heads<T>(const Stream&, const Heads&, DeviceIn<T>, DeviceOut<T>);        \
  template void merge_heads_gradient<T>(const Stream&, const Heads&, DeviceIn<T>, DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

// Looks up rows of a part of a table on a GPU, and adds up what they receive.
#include "kernels/embedding.hpp"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/row.cuh"

namespace stratagem::kernels {
namespace {

/// A block a token; `kept` has the rows of the table that are here.
template <typename T>
__global__ void embedding_kernel(Rows kept, std::int64_t first, bool in_packets,
                                 const std::int64_t* tokens, const T* table, T* y) {
  const std::int64_t row = tokens[blockIdx.x] - first;
  const bool here = row >= 0 && row < kept.rows;
  for_columns<T>(kept.columns, in_packets, [&](auto count, std::int64_t column) {
    Values<T, count()> values{};
    if (here) values = load<count()>(table + row * kept.columns + column);
    store(values, y + blockIdx.x * kept.columns + column);
  });
}

/// Whether a token before this one is the same; for all threads of a block.
__device__ bool seen_before(const std::int64_t* tokens, std::int64_t here) {
  for (std::int64_t i = 0; i < here; i += blockDim.x) {
    const std::int64_t mine = i + threadIdx.x;
    if (__syncthreads_or(mine < here && tokens[mine] == tokens[here])) return true;
  }
  return false;
}

/// The block of a token's first occurrence adds up what all its occurrences give, in their order.
template <typename T>
__global__ void embedding_gradient_kernel(Rows kept, std::int64_t first, std::int64_t size,
                                          bool in_packets, const T* dy, const std::int64_t* tokens,
                                          T* dtable) {
  const std::int64_t here = blockIdx.x, token = tokens[here], row = token - first;
  if (row < 0 || row >= kept.rows || seen_before(tokens, here)) return;
  for_columns<T>(kept.columns, in_packets, [&](auto count, std::int64_t column) {
    T* const to = dtable + row * kept.columns + column;
    auto sum = load<count()>(static_cast<const T*>(to));
    for (std::int64_t other = here; other < size; ++other) {
      if (tokens[other] != token) continue;
      const auto values = load<count()>(dy + other * kept.columns + column);
      for (int i = 0; i < count(); ++i) sum[i] += values[i];
    }
    store(sum, to);
  });
}

/// Rows of the table, after what it is given was found to fit together.
template <typename T>
Rows checked(const Stream& stream, std::int64_t width, std::size_t tokens, std::size_t table,
             DeviceIn<T> rows_of_tokens) {
  expect_type<T>(stream);
  expects(width > 0 && table % static_cast<std::size_t>(width) == 0,
          "a table of an embedding is made of whole rows");
  expect_size(static_cast<std::int64_t>(tokens) * width, rows_of_tokens);
  return {static_cast<std::int64_t>(table) / width, width};
}

}  // namespace

template <typename T>
void embedding(const Stream& stream, std::int64_t width, std::int64_t first,
               DeviceIn<std::int64_t> tokens, DeviceIn<T> table, DeviceOut<T> y) {
  const Rows kept = checked<T>(stream, width, tokens.size(), table.size(), y);
  if (tokens.size() == 0) return;
  const Rows picked{static_cast<std::int64_t>(tokens.size()), width};
  const RowLaunch launch = row_launch<T>(picked, table.data(), y.data());
  start_kernel(stream, &embedding_kernel<T>, launch.grid, kept, first, launch.in_packets,
               tokens.data(), table.data(), y.data());
}

template <typename T>
void embedding_gradient(const Stream& stream, std::int64_t width, std::int64_t first,
                        DeviceIn<T> dy, DeviceIn<std::int64_t> tokens, DeviceOut<T> dtable) {
  const Rows kept = checked<T>(stream, width, tokens.size(), dtable.size(), dy);
  if (tokens.size() == 0) return;
  const Rows picked{static_cast<std::int64_t>(tokens.size()), width};
  const RowLaunch launch = row_launch<T>(picked, dy.data(), dtable.data());
  // 256 threads, however narrow the rows: they look for equal tokens too.
  start_kernel(stream, &embedding_gradient_kernel<T>, {launch.grid.blocks, 256}, kept, first,
               picked.rows, launch.in_packets, dy.data(), tokens.data(), dtable.data());
}

#define INSTANTIATE(T)                                                                          \
  template void embedding<T>(const Stream&, std::int64_t, std::int64_t, DeviceIn<std::int64_t>, \
                             DeviceIn<T>, DeviceOut<T>);                                        \
  template void embedding_gradient<T>(const Stream&, std::int64_t, std::int64_t, DeviceIn<T>,   \
                                      DeviceIn<std::int64_t>, DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

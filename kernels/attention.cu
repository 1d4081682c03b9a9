// Attention on a GPU: which kernel for which shape, type and GPU.
#include "kernels/attention.hpp"
#include "kernels/inside/attention_backward.cuh"
#include "kernels/inside/attention_forward.cuh"
#include "kernels/inside/attention_plain.cuh"
#include "kernels/inside/attention_wmma.cuh"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/row.cuh"

namespace stratagem::kernels {
namespace {

/// along (rows) = sum over columns of dout * out.
template <typename T>
__global__ void along_kernel(Rows shape, bool in_packets, const T* dout, const T* out,
                             float* along) {
  const std::int64_t row = blockIdx.x * shape.columns;
  float sum = 0;
  for_columns<T>(shape.columns, in_packets, [&](auto count, std::int64_t column) {
    const auto a = load<count()>(dout + row + column), b = load<count()>(out + row + column);
    for (int i = 0; i < count(); ++i) sum += a[i] * b[i];
  });
  sum = over_block(sum, Add{});
  if (threadIdx.x == 0) along[blockIdx.x] = sum;
}

template <typename Q, typename K>
void expect_sizes(const Attention& a, std::size_t log_sums, std::initializer_list<Q> by_query,
                  std::initializer_list<K> by_key) {
  expects(a.kv_heads > 0 && a.heads % a.kv_heads == 0, "heads of keys divide heads of queries");
  expects(a.keys > 0, "a query sees a key");
  expects(!a.causal || a.queries <= a.keys, "causal queries are the last of the keys");
  for (const auto& x : by_query) expect_size(a.batch * a.heads * a.queries * a.size, x);
  for (const auto& x : by_key) expect_size(a.batch * a.kv_heads * a.keys * a.size, x);
  expects(log_sums == static_cast<std::size_t>(a.batch * a.heads * a.queries),
          "attention has a log sum for every query of every head");
}

void expect_head(const Attention& a) {
  if (a.size > plain_most)
    throw DeviceError("attention on a GPU knows heads of up to 256, not " + std::to_string(a.size));
  if (a.value_size() != a.size || a.window > 0)
    throw DeviceError("attention on a GPU knows no windows, and values as wide as keys alone");
}

/// Blocks of one kernel: `rows` rows each of all heads.
unsigned blocks_of(std::int64_t heads, std::int64_t all, std::int64_t rows) {
  return static_cast<unsigned>(heads * ((all + rows - 1) / rows));
}

/// All kernels of attention have four warps.
template <typename... Parameters, typename... Arguments>
void launch(const Stream& stream, void (*kernel)(Parameters...), dim3 blocks, std::size_t shared,
            const Arguments&... arguments) {
  start_kernel(stream, kernel, {blocks, 128, shared}, arguments...);
}

bool has_shared(const Stream& stream, std::size_t bytes) {
  return stream.device().shared_memory.value >= static_cast<double>(bytes);
}

/// Whether tensor cores can take it, with tiles that fit into shared memory.
template <typename T, typename... Pointers>
bool for_tensor_cores(const Stream& stream, const Attention& a, Pointers... operands) {
  if constexpr (std::is_same_v<T, float>) return false;
  return stream.device().at_least(7, 5) && a.size % 8 == 0 && (aligned(operands, 16) && ...) &&
         (a.size <= 128 || stream.device().at_least(8));
}

/// Calls `run` with the width of tiles that holds a head.
template <typename Run>
void with_width(std::int64_t size, const Run& run) {
  if (size <= 64) return run(std::integral_constant<int, 64>{});
  if (size <= 128) return run(std::integral_constant<int, 128>{});
  run(std::integral_constant<int, 256>{});
}

template <typename T>
struct ForwardOperands {
  const T *q, *k, *v;
  T* out;
  float* log_sums;
};

template <typename T, int width, int row_tiles>
void run_forward(const Stream& stream, const AttentionShape& shape, const ForwardOperands<T>& x) {
  launch(stream, &forward_kernel<T, width, row_tiles>,
         blocks_of(shape.heads, shape.queries, queries_of_block<row_tiles>),
         forward_bytes<width, row_tiles>, shape, x.q, x.k, x.v, x.out, x.log_sums);
}

/// 32 queries a warp; 16 where registers, or the shared memory of 7.5, do not hold more.
template <typename T>
void run_forward(const Stream& stream, const AttentionShape& shape, const ForwardOperands<T>& x) {
  with_width(shape.size, [&](auto width) {
    if constexpr (width() == 256) {
      run_forward<T, 256, 1>(stream, shape, x);
    } else if constexpr (width() == 128) {
      if (stream.device().at_least(8))
        run_forward<T, 128, 2>(stream, shape, x);
      else
        run_forward<T, 128, 1>(stream, shape, x);
    } else {
      run_forward<T, width(), 2>(stream, shape, x);
    }
  });
}

/// Whether WMMA can take it. On GPUs with mma.sync only those ask for it who want just this.
template <typename T, typename... Pointers>
bool for_wmma(const Stream& stream, const Attention& a, Pointers... operands) {
  return std::is_same_v<T, Half> && stream.device().at_least(7) && a.size % 8 == 0 &&
         a.size <= 128 && (aligned(operands, 16) && ...);
}

void run_wmma(const Stream& stream, const AttentionShape& shape, const ForwardOperands<Half>& x) {
  const auto run = [&]<int width>(std::integral_constant<int, width>) {
    launch(stream, &wmma_forward_kernel<width>, blocks_of(shape.heads, shape.queries, wmma_rows),
           sizeof(WmmaShared<width>), shape, x.q, x.k, x.v, x.out, x.log_sums);
  };
  if (shape.size <= 64) return run(std::integral_constant<int, 64>{});
  run(std::integral_constant<int, 128>{});
}

template <typename T>
void run_plain(const Stream& stream, const AttentionShape& shape, const ForwardOperands<T>& x) {
  launch(stream, &plain_forward_kernel<T>, blocks_of(shape.heads, shape.queries, plain_rows),
         plain_bytes(shape.size), shape, x.q, x.k, x.v, x.out, x.log_sums);
}

template <typename T>
void run_backward(const Stream& stream, const AttentionShape& shape, const GradientOperands<T>& x) {
  with_width(shape.size, [&](auto width) {
    constexpr unsigned parts = width() / part_of_gradient<width()>;
    const int buffers =
        stream.device().at_least(8) && has_shared(stream, gradient_bytes<width()>(2)) ? 2 : 1;
    const dim3 of_keys(blocks_of(shape.kv_heads, shape.keys, rows_of_gradient), parts);
    launch(stream, &gradient_kernel<T, width(), true>, of_keys, gradient_bytes<width()>(buffers),
           shape, x, buffers);
    const dim3 of_queries(blocks_of(shape.heads, shape.queries, rows_of_gradient), parts);
    launch(stream, &gradient_kernel<T, width(), false>, of_queries,
           gradient_bytes<width()>(buffers), shape, x, buffers);
  });
}

}  // namespace

template <typename T>
void attention(const Stream& stream, const Attention& a, DeviceIn<T> q, DeviceIn<T> k,
               DeviceIn<T> v, DeviceOut<T> out, DeviceOut<float> log_sums, AttentionKernel kernel) {
  expect_type<T>(stream);
  expect_sizes<DeviceIn<T>, DeviceIn<T>>(a, log_sums.size(), {q, out}, {k, v});
  expect_head(a);
  if (out.size() == 0) return;
  const AttentionShape shape(a);
  const ForwardOperands<T> x{q.data(), k.data(), v.data(), out.data(), log_sums.data()};
  const bool wmma = for_wmma<T>(stream, a, x.q, x.k, x.v, x.out);
  if (kernel == AttentionKernel::wmma && !wmma)
    throw DeviceError(
        "attention by WMMA takes aligned fp16 heads of 8, 16, ... 128 on 7.0 and newer");
  if (kernel == AttentionKernel::plain) return run_plain(stream, shape, x);
  if constexpr (!std::is_same_v<T, float>) {
    if (kernel != AttentionKernel::wmma && for_tensor_cores<T>(stream, a, x.q, x.k, x.v, x.out))
      return run_forward(stream, shape, x);
  }
  if constexpr (std::is_same_v<T, Half>)
    if (wmma) return run_wmma(stream, shape, x);
  run_plain(stream, shape, x);
}

template <typename T>
void attention_gradient(const Stream& stream, const Attention& a, DeviceIn<T> dout, DeviceIn<T> q,
                        DeviceIn<T> k, DeviceIn<T> v, DeviceIn<T> out, DeviceIn<float> log_sums,
                        DeviceOut<T> dq, DeviceOut<T> dk, DeviceOut<T> dv) {
  expect_type<T>(stream);
  expect_sizes<DeviceIn<T>, DeviceIn<T>>(a, log_sums.size(), {dout, q, out, dq}, {k, v, dk, dv});
  expect_head(a);
  if (out.size() == 0) {
    fill_bytes(stream, dk.data(), 0, dk.size() * sizeof(T));
    return fill_bytes(stream, dv.data(), 0, dv.size() * sizeof(T));
  }
  const Rows rows{a.batch * a.heads * a.queries, a.size};
  float* const along = scratch<float>(stream, rows.rows);
  const RowLaunch sums = row_launch<T>(rows, dout.data(), out.data());
  start_kernel(stream, &along_kernel<T>, sums.grid, rows, sums.in_packets, dout.data(), out.data(),
               along);
  const AttentionShape shape(a);
  const GradientOperands<T> x{q.data(), k.data(),  v.data(),  dout.data(), log_sums.data(),
                              along,    dq.data(), dk.data(), dv.data()};
  if constexpr (!std::is_same_v<T, float>)
    if (for_tensor_cores<T>(stream, a, x.q, x.k, x.v, x.dout, x.dq, x.dk, x.dv))
      return run_backward(stream, shape, x);
  launch(stream, &plain_gradient_kernel<true, T>, blocks_of(shape.kv_heads, shape.keys, plain_rows),
         plain_bytes(a.size), shape, x);
  launch(stream, &plain_gradient_kernel<false, T>,
         blocks_of(shape.heads, shape.queries, plain_rows), plain_bytes(a.size), shape, x);
}

#define INSTANTIATE(T)                                                                           \
  template void attention<T>(const Stream&, const Attention&, DeviceIn<T>, DeviceIn<T>,          \
                             DeviceIn<T>, DeviceOut<T>, DeviceOut<float>, AttentionKernel);      \
  template void attention_gradient<T>(const Stream&, const Attention&, DeviceIn<T>, DeviceIn<T>, \
                                      DeviceIn<T>, DeviceIn<T>, DeviceIn<T>, DeviceIn<float>,    \
                                      DeviceOut<T>, DeviceOut<T>, DeviceOut<T>);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

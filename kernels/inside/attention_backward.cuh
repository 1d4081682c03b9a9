// Fused attention on tensor cores, backward: probabilities are computed again from log sums.
//
// Two kernels of one kind, one whose rows are keys, one whose rows are queries. FlashAttention-2
// has one, which adds to the gradient of q from many blocks at once; that takes five products
// instead of seven, and its sums come in another order every time.
#pragma once

#include "kernels/inside/attention_shape.cuh"
#include "kernels/inside/tensor_core.cuh"

namespace stratagem::kernels {

inline constexpr int rows_of_gradient = 64, threads_of_gradient = 128;

/// What the other side of the scores has in one step, and columns of the result that a block has.
template <int width>
inline constexpr int step_of_gradient = width > 64 ? 32 : 64;
template <int width>
inline constexpr int part_of_gradient = width > 128 ? 128 : width;

/// Shared memory: two tiles of rows, `buffers` times two tiles of a step with two numbers a query.
template <int width>
constexpr std::size_t gradient_bytes(int buffers) {
  const std::size_t tiles = 2 * rows_of_gradient + 2 * buffers * step_of_gradient<width>;
  return 2 * tiles * (width + 8) + sizeof(float) * 2 * buffers * step_of_gradient<width>;
}

/// What of_keys = true reads and writes, and what of_keys = false does.
template <typename T>
struct GradientOperands {
  const T *q, *k, *v, *dout;
  const float *log_sums, *along;  ///< along: sum of dout * out over each query's columns
  T *dq, *dk, *dv;
};

/// Scores of 16 rows with a step, and what comes of them.
template <typename T, int width>
struct GradientRows {
  static constexpr int tiles = step_of_gradient<width> / 8;
  static constexpr int part_tiles = part_of_gradient<width> / 8;
  using Out = float[part_tiles][4];

  float p[tiles][4], ds[tiles][4];

  /// to = rows columns^T.
  static __device__ void product(float (&to)[tiles][4], const Tile<T, width>& rows, int first_row,
                                 const Tile<T, width>& columns) {
#pragma unroll
    for (int n = 0; n < tiles; ++n)
#pragma unroll
      for (float& x : to[n]) x = 0;
#pragma unroll
    for (int c = 0; c < width; c += 16) {
      unsigned a[4];
      rows.load_a(a, first_row, c);
#pragma unroll
      for (int n = 0; n < tiles; n += 2) {
        unsigned b[4];
        columns.load_b(b, 8 * n, c);
        multiply_add<T>(to[n], a, b[0], b[1]);
        multiply_add<T>(to[n + 1], a, b[2], b[3]);
      }
    }
  }

  /// out += weights tile, columns from `first_column` on.
  static __device__ void add_product(Out& out, const float (&weights)[tiles][4],
                                     const Tile<T, width>& tile, int first_column) {
#pragma unroll
    for (int k = 0; k < tiles; k += 2) {
      unsigned a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = pair_of<T>(weights[k + i / 2][i % 2 * 2], weights[k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (int n = 0; n < part_tiles; n += 2) {
        unsigned b[4];
        tile.load_b_by_rows(b, 8 * k, first_column + 8 * n);
        multiply_add<T>(out[n], a, b[0], b[1]);
        multiply_add<T>(out[n + 1], a, b[2], b[3]);
      }
    }
  }

  static __device__ void clear(Out& out) {
#pragma unroll
    for (int n = 0; n < part_tiles; ++n)
#pragma unroll
      for (float& x : out[n]) x = 0;
  }

  /// Writes rows that exist.
  static __device__ void write(const Out& out, float factor, std::int64_t row, std::int64_t rows,
                               int first_column, int size, T* to) {
    const int column = first_column + threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + 8 * half >= rows) continue;
#pragma unroll
      for (int n = 0; n < part_tiles; ++n)
        if (column + 8 * n < size)
          *reinterpret_cast<unsigned*>(to + (row + 8 * half) * size + column + 8 * n) =
              pair_of<T>(out[n][2 * half] * factor, out[n][2 * half + 1] * factor);
    }
  }
};

/// Log sum, base 2, and `along` of a query; what does not exist has probabilities of 0.
struct OfQuery {
  __device__ OfQuery(const AttentionShape& shape, std::int64_t head, std::int64_t query,
                     const float* log_sums, const float* along_rows) {
    if (query >= shape.queries) return;
    log_sum = log_sums[head * shape.queries + query] * log2_of_e;
    along = along_rows[head * shape.queries + query];
  }
  float log_sum = INFINITY, along = 0;
};

/// One block's rows, keys or queries, and the steps of the other side that they meet.
template <typename T, int width, bool of_keys>
struct GradientBlock {
  static constexpr int step = step_of_gradient<width>;

  __device__ GradientBlock(const AttentionShape& s, const GradientOperands<T>& operands)
      : shape(s), x(operands) {
    const std::int64_t all = of_keys ? s.keys : s.queries;
    const std::int64_t blocks = (all + rows_of_gradient - 1) / rows_of_gradient;
    head = blockIdx.x / blocks;
    // Blocks with most to do come first: the first keys, the last queries.
    const std::int64_t block = blockIdx.x % blocks;
    first = (of_keys ? block : blocks - 1 - block) * rows_of_gradient;
    begin = of_keys ? s.first_to_see(first) / step * step : 0;
    const std::int64_t end = of_keys ? s.queries : s.seen_by(first + rows_of_gradient - 1);
    steps_of_head = end > begin ? (end - begin + step - 1) / step : 0;
    steps = steps_of_head * (of_keys ? s.group : 1);
  }

  [[nodiscard]] __device__ std::int64_t query_head(std::int64_t i) const {
    return of_keys ? head * shape.group + i / steps_of_head : head;
  }
  [[nodiscard]] __device__ std::int64_t place(std::int64_t i) const {
    return begin + i % steps_of_head * step;
  }

  AttentionShape shape;
  GradientOperands<T> x;
  std::int64_t head, first;  ///< head of keys, or of queries; its first row here
  std::int64_t begin, steps_of_head, steps;
};

/// Columns of a step, from `begin` to `end`, that a row meets: keys that its query sees, or queries
/// that see its key.
struct SeenColumns {
  template <typename T, int width, bool of_keys>
  __device__ SeenColumns(const GradientBlock<T, width, of_keys>& block, std::int64_t row,
                         std::int64_t place) {
    constexpr std::int64_t step = step_of_gradient<width>;
    if (of_keys)
      begin = static_cast<int>(min(block.shape.first_to_see(row) - place, step));
    else
      end = static_cast<int>(min(block.shape.seen_by(row) - place, step));
  }
  [[nodiscard]] __device__ bool has(int column) const { return column >= begin && column < end; }

  int begin = 0, end = 1 << 30;
};

/// The two tiles of a step and what belongs to its queries.
template <typename T, int width>
struct GradientStep {
  static constexpr int step = step_of_gradient<width>;
  Tile<T, width> left, right;  ///< q and dout, or k and v
  float *log_sums, *along;     ///< of queries in steps of queries

  template <bool of_keys>
  __device__ void copy(const GradientBlock<T, width, of_keys>& block, std::int64_t i) const {
    const AttentionShape& shape = block.shape;
    const std::int64_t place = block.place(i), all = of_keys ? shape.queries : shape.keys;
    const std::int64_t head = of_keys ? block.query_head(i) : block.head / shape.group;
    const std::int64_t at = (head * all + place) * shape.size;
    left.copy((of_keys ? block.x.q : block.x.k) + at, step, all - place, shape.size);
    right.copy((of_keys ? block.x.dout : block.x.v) + at, step, all - place, shape.size);
    if (of_keys && threadIdx.x < step) {
      const OfQuery query(shape, head, place + threadIdx.x, block.x.log_sums, block.x.along);
      log_sums[threadIdx.x] = query.log_sum;
      along[threadIdx.x] = query.along;
    }
  }
};

/// of_keys: dk and dv of 64 keys, from all queries that see them in all heads that share them.
/// Else: dq of 64 queries. Rows meet steps; with two buffers the next step is on its way while one
/// is computed with. blockIdx.y picks the columns of the result where a block cannot hold all.
template <typename T, int width, bool of_keys>
__device__ void gradient_block(AttentionShape shape, GradientOperands<T> operands, int buffers) {
  using Rows = GradientRows<T, width>;
  constexpr int step = step_of_gradient<width>;
  const GradientBlock<T, width, of_keys> block(shape, operands);
  const Tile<T, width> left{dynamic_shared<T>()}, right{left.at(rows_of_gradient, 0)};
  T* const tiles_of_steps = right.at(rows_of_gradient, 0);
  float* const numbers =
      reinterpret_cast<float*>(tiles_of_steps + 2 * buffers * step * Tile<T, width>::row);
  const auto buffer = [&](std::int64_t i) {
    const int which = static_cast<int>(i % buffers);
    T* const tiles = tiles_of_steps + which * 2 * step * Tile<T, width>::row;
    return GradientStep<T, width>{{tiles},
                                  {tiles + step * Tile<T, width>::row},
                                  numbers + which * 2 * step,
                                  numbers + which * 2 * step + step};
  };

  const std::int64_t all = of_keys ? shape.keys : shape.queries;
  const std::int64_t at = (block.head * all + block.first) * shape.size;
  left.copy((of_keys ? operands.k : operands.q) + at, rows_of_gradient, all - block.first,
            shape.size);
  right.copy((of_keys ? operands.v : operands.dout) + at, rows_of_gradient, all - block.first,
             shape.size);
  if (block.steps > 0) buffer(0).copy(block, 0);
  end_copies();

  const int warp_row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const std::int64_t row = block.first + warp_row + g;
  const OfQuery upper = of_keys
                            ? OfQuery(shape, 0, shape.queries, nullptr, nullptr)
                            : OfQuery(shape, block.head, row, operands.log_sums, operands.along);
  const OfQuery lower =
      of_keys ? upper : OfQuery(shape, block.head, row + 8, operands.log_sums, operands.along);
  const int first_column = static_cast<int>(blockIdx.y) * part_of_gradient<width>;
  const float scale_2 = shape.scale * log2_of_e;
  Rows rows;
  typename Rows::Out from_left, from_right;  // dk or dq; dv
  Rows::clear(from_left);
  Rows::clear(from_right);

  for (std::int64_t i = 0; i < block.steps; ++i) {
    const bool more = i + 1 < block.steps;
    if (buffers == 2) {
      if (more) buffer(i + 1).copy(block, i + 1);
      end_copies();
      wait_for_copies<1>();
    } else {
      end_copies();
      wait_for_copies<0>();
    }
    __syncthreads();
    const GradientStep<T, width> now = buffer(i);
    Rows::product(rows.p, left, warp_row, now.left);
    Rows::product(rows.ds, right, warp_row, now.right);
    const std::int64_t place = block.place(i);
    const SeenColumns of_upper(block, row, place), of_lower(block, row + 8, place);
#pragma unroll
    for (int n = 0; n < Rows::tiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = 8 * n + 2 * t + e % 2;
        const OfQuery& of_row = e < 2 ? upper : lower;
        const float log_sum = of_keys ? now.log_sums[column] : of_row.log_sum;
        const float along = of_keys ? now.along[column] : of_row.along;
        const bool seen = (e < 2 ? of_upper : of_lower).has(column);
        rows.p[n][e] = seen ? power_of_2(rows.p[n][e] * scale_2 - log_sum) : 0.0F;
        rows.ds[n][e] = rows.p[n][e] * (rows.ds[n][e] - along);
      }
    Rows::add_product(from_left, rows.ds, now.left, first_column);
    if constexpr (of_keys) Rows::add_product(from_right, rows.p, now.right, first_column);
    __syncthreads();
    if (buffers == 1 && more) buffer(i + 1).copy(block, i + 1);
  }
  wait_for_copies<0>();
  const std::int64_t to = block.head * all * shape.size;
  Rows::write(from_left, shape.scale, row, all, first_column, shape.size,
              (of_keys ? operands.dk : operands.dq) + to);
  if constexpr (of_keys)
    Rows::write(from_right, 1.0F, row, all, first_column, shape.size, operands.dv + to);
}

template <typename T, int width, bool of_keys>
__global__ void __launch_bounds__(threads_of_gradient)
    gradient_kernel(AttentionShape shape, GradientOperands<T> operands, int buffers) {
  if constexpr (on_tensor_cores<T, width>())
    gradient_block<T, width, of_keys>(shape, operands, buffers);
}

}  // namespace stratagem::kernels

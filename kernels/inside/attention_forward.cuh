// Fused attention on tensor cores, forward: scores and probabilities never leave the registers.
#pragma once

#include "kernels/inside/attention_shape.cuh"
#include "kernels/inside/tensor_core.cuh"

namespace stratagem::kernels {

inline constexpr int keys_of_step = 64, warps_of_attention = 4;

/// Queries of a block, 16 or 32 a warp.
template <int row_tiles>
inline constexpr int queries_of_block = warps_of_attention * 16 * row_tiles;

/// Shared memory: a tile of queries, one of keys, one of values.
template <int width, int row_tiles>
inline constexpr std::size_t forward_bytes = std::size_t{2} *
                                             (queries_of_block<row_tiles> + 2 * keys_of_step) *
                                             (width + 8);

/// The rows of one warp: what it has of the result, and of the softmax so far.
template <typename T, int width, int row_tiles>
struct ForwardRows {
  static constexpr int score_tiles = keys_of_step / 8, out_tiles = width / 8;

  float scores[row_tiles][score_tiles][4];
  float out[row_tiles][out_tiles][4];
  float largest[row_tiles][2];  ///< scores, before they are scaled; rows g and g + 8
  float sums[row_tiles][2];     ///< of this thread's columns

  __device__ void begin() {
#pragma unroll
    for (int r = 0; r < row_tiles; ++r) {
#pragma unroll
      for (int n = 0; n < out_tiles; ++n)
#pragma unroll
        for (float& x : out[r][n]) x = 0;
      largest[r][0] = largest[r][1] = -INFINITY;
      sums[r][0] = sums[r][1] = 0;
    }
  }

  /// scores = q k^T.
  __device__ void score(const Tile<T, width>& q, const Tile<T, width>& k, int first_row) {
#pragma unroll
    for (int r = 0; r < row_tiles; ++r)
#pragma unroll
      for (int n = 0; n < score_tiles; ++n)
#pragma unroll
        for (float& x : scores[r][n]) x = 0;
#pragma unroll
    for (int c = 0; c < width; c += 16) {
      unsigned a[row_tiles][4];
#pragma unroll
      for (int r = 0; r < row_tiles; ++r) q.load_a(a[r], first_row + 16 * r, c);
#pragma unroll
      for (int n = 0; n < score_tiles; n += 2) {
        unsigned b[4];
        k.load_b(b, 8 * n, c);
#pragma unroll
        for (int r = 0; r < row_tiles; ++r) {
          multiply_add<T>(scores[r][n], a[r], b[0], b[1]);
          multiply_add<T>(scores[r][n + 1], a[r], b[2], b[3]);
        }
      }
    }
  }

  /// Takes out keys that a row does not see; keys count from `first_key`, queries from `query`,
  /// that of this thread's first row.
  __device__ void hide(const AttentionShape& shape, std::int64_t query, std::int64_t first_key) {
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int r = 0; r < row_tiles; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto seen = static_cast<int>(
            min(shape.seen_by(query + 16 * r + i / 2 * 8) - first_key, std::int64_t{keys_of_step}));
#pragma unroll
        for (int n = 0; n < score_tiles; ++n)
          if (8 * n + column + i % 2 >= seen) scores[r][n][i] = -INFINITY;
      }
  }

  /// Scores become exponentials relative to the largest so far; what was summed up shrinks.
  __device__ void soften(float scale_2) {
#pragma unroll
    for (int r = 0; r < row_tiles; ++r)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float top = largest[r][half];
#pragma unroll
        for (int n = 0; n < score_tiles; ++n)
          top = fmaxf(top, fmaxf(scores[r][n][2 * half], scores[r][n][2 * half + 1]));
        top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 2));
        const float shrink = power_of_2((largest[r][half] - top) * scale_2), shift = top * scale_2;
        largest[r][half] = top;
        float sum = sums[r][half] * shrink;
#pragma unroll
        for (int n = 0; n < score_tiles; ++n)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            scores[r][n][i] = power_of_2(scores[r][n][i] * scale_2 - shift);
            sum += scores[r][n][i];
          }
        sums[r][half] = sum;
#pragma unroll
        for (int n = 0; n < out_tiles; ++n) {
          out[r][n][2 * half] *= shrink;
          out[r][n][2 * half + 1] *= shrink;
        }
      }
  }

  /// out += probabilities v.
  __device__ void gather(const Tile<T, width>& v) {
#pragma unroll
    for (int k = 0; k < score_tiles; k += 2) {
      unsigned a[row_tiles][4];
#pragma unroll
      for (int r = 0; r < row_tiles; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&from)[4] = scores[r][k + i / 2];
          a[r][i] = pair_of<T>(from[i % 2 * 2], from[i % 2 * 2 + 1]);
        }
#pragma unroll
      for (int n = 0; n < out_tiles; n += 2) {
        unsigned b[4];
        v.load_b_by_rows(b, 8 * k, 8 * n);
#pragma unroll
        for (int r = 0; r < row_tiles; ++r) {
          multiply_add<T>(out[r][n], a[r], b[0], b[1]);
          multiply_add<T>(out[r][n + 1], a[r], b[2], b[3]);
        }
      }
    }
  }

  /// Writes the result and log sums of rows that exist; `query` is that of this thread's first row.
  __device__ void finish(const AttentionShape& shape, std::int64_t head, std::int64_t query, T* to,
                         float* log_sums) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int r = 0; r < row_tiles; ++r)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float sum = sums[r][half];
        sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
        const std::int64_t row = query + 16 * r + 8 * half;
        if (row >= shape.queries) continue;
        const std::int64_t at = head * shape.queries + row;
        if (t == 0) log_sums[at] = largest[r][half] * shape.scale + logf(sum);
        const float share = 1.0F / sum;
#pragma unroll
        for (int n = 0; n < out_tiles; ++n)
          if (8 * n + 2 * t < shape.size)
            *reinterpret_cast<unsigned*>(to + at * shape.size + 8 * n + 2 * t) =
                pair_of<T>(out[r][n][2 * half] * share, out[r][n][2 * half + 1] * share);
      }
  }
};

/// A block has some queries of a head and goes through the keys 64 at a time: while it computes
/// scores, values arrive, and while it sums up values, the next keys do. `width`: the size of a
/// head, rounded up; columns beyond it are zeros. Dao, FlashAttention-2, arXiv:2307.08691,
/// algorithm 1. Blocks with the most keys come first.
template <typename T, int width, int row_tiles>
__device__ void forward_block(AttentionShape shape, const T* q, const T* k, const T* v, T* out,
                              float* log_sums) {
  constexpr int queries = queries_of_block<row_tiles>;
  const Tile<T, width> q_tile{dynamic_shared<T>()};
  const Tile<T, width> k_tile{q_tile.at(queries, 0)}, v_tile{k_tile.at(keys_of_step, 0)};
  const std::int64_t blocks = (shape.queries + queries - 1) / queries;
  const std::int64_t head = blockIdx.x / blocks;
  const std::int64_t first = (blocks - 1 - blockIdx.x % blocks) * queries;
  const T* const q_head = q + (head * shape.queries + first) * shape.size;
  const T* const k_head = k + head / shape.group * shape.keys * shape.size;
  const T* const v_head = v + head / shape.group * shape.keys * shape.size;
  const int warp_row = threadIdx.x / 32 * 16 * row_tiles;
  const std::int64_t query = first + warp_row + threadIdx.x % 32 / 4;
  const std::int64_t seen = shape.seen_by(first + queries - 1);

  q_tile.copy(q_head, queries, shape.queries - first, shape.size);
  k_tile.copy(k_head, keys_of_step, shape.keys, shape.size);
  end_copies();
  ForwardRows<T, width, row_tiles> rows;
  rows.begin();
  for (std::int64_t key = 0; key < seen; key += keys_of_step) {
    wait_for_copies<0>();
    __syncthreads();  // keys are there, and nobody needs the last values
    v_tile.copy(v_head + key * shape.size, keys_of_step, shape.keys - key, shape.size);
    end_copies();
    rows.score(q_tile, k_tile, warp_row);
    wait_for_copies<0>();
    __syncthreads();  // values are there, and nobody needs these keys
    const std::int64_t next = key + keys_of_step;
    if (next < seen) {
      k_tile.copy(k_head + next * shape.size, keys_of_step, shape.keys - next, shape.size);
      end_copies();
    }
    if (next > shape.seen_by(first + warp_row)) rows.hide(shape, query, key);
    rows.soften(shape.scale * log2_of_e);
    rows.gather(v_tile);
  }
  rows.finish(shape, head, query, out, log_sums);
}

/// 7.5 has room for 16 queries a warp of the wider tiles; from 8.0 on 32 are quicker.
template <typename T, int width, int row_tiles>
__global__ void __launch_bounds__(32 * warps_of_attention)
    forward_kernel(AttentionShape shape, const T* q, const T* k, const T* v, T* out,
                   float* log_sums) {
#if __CUDA_ARCH__ >= 800
  constexpr bool used = width != 128 || row_tiles == 2;
#else
  constexpr bool used = width != 128 || row_tiles == 1;
#endif
  if constexpr (used && on_tensor_cores<T, width>())
    forward_block<T, width, row_tiles>(shape, q, k, v, out, log_sums);
}

}  // namespace stratagem::kernels

// Fused attention forward with WMMA, for GPUs of compute capability 7.0, which have no mma.sync of
// the shape that attention_forward.cuh uses. Runs on newer ones too, where it is slower.
#pragma once

#include <mma.h>

#include "kernels/inside/attention_shape.cuh"
#include "kernels/inside/tensor_core.cuh"

namespace stratagem::kernels {

/// Queries of a block, 16 a warp, and keys of a step.
inline constexpr int wmma_rows = 64, wmma_keys = 64;

/// Where a block keeps what: which element of a fragment is in which register is nobody's business,
/// so scores, probabilities and results pass through shared memory. Rows have 16 bytes more than
/// they need, against conflicts of banks; all begin at multiples of 32 bytes, as WMMA wants it.
template <int width>
struct WmmaShared {
  static constexpr int score_row = wmma_keys + 4, p_row = wmma_keys + 8, out_row = width + 4;
  alignas(32) __half q[wmma_rows * (width + 8)];
  alignas(32) __half keys_or_values[wmma_keys * (width + 8)];
  alignas(32) float scores[wmma_rows * score_row];
  alignas(32) __half p[wmma_rows * p_row];
  alignas(32) float out[wmma_rows * out_row];
};

/// One warp's 16 rows; two lanes share a row, columns in turn.
template <int width>
struct WmmaRows {
  using A =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major>;
  using C = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>;
  template <typename Layout>
  using B = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, __half, Layout>;
  using Shared = WmmaShared<width>;

  __device__ explicit WmmaRows(Shared& block)
      : shared(block),
        first(threadIdx.x / 32 * 16),
        row(first + threadIdx.x % 32 / 2),
        side(threadIdx.x % 2) {
    for (int c = side; c < width; c += 2) shared.out[row * Shared::out_row + c] = 0;
  }

  /// scores = q k^T.
  __device__ void score() {
    for (int n = 0; n < wmma_keys; n += 16) {
      C c;
      nvcuda::wmma::fill_fragment(c, 0.0F);
#pragma unroll
      for (int k = 0; k < width; k += 16) {
        A a;
        B<nvcuda::wmma::col_major> b;
        nvcuda::wmma::load_matrix_sync(a, shared.q + first * (width + 8) + k, width + 8);
        nvcuda::wmma::load_matrix_sync(b, shared.keys_or_values + n * (width + 8) + k, width + 8);
        nvcuda::wmma::mma_sync(c, a, b, c);
      }
      nvcuda::wmma::store_matrix_sync(shared.scores + first * Shared::score_row + n, c,
                                      Shared::score_row, nvcuda::wmma::mem_row_major);
    }
    __syncwarp();
  }

  /// Probabilities relative to the largest score so far, of the first `seen` keys of this step;
  /// what was summed up shrinks.
  __device__ void soften(int seen, float scale_2) {
    const float* const scores = shared.scores + row * Shared::score_row;
    float top = largest;
    for (int c = side; c < seen && c < wmma_keys; c += 2) top = fmaxf(top, scores[c]);
    top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 1));
    const float shrink = power_of_2((largest - top) * scale_2);
    largest = top;
    sum *= shrink;
    for (int c = side; c < wmma_keys; c += 2) {
      const float p = c < seen ? power_of_2((scores[c] - top) * scale_2) : 0.0F;
      shared.p[row * Shared::p_row + c] = __float2half_rn(p);
      sum += p;
    }
    for (int c = side; c < width; c += 2) shared.out[row * Shared::out_row + c] *= shrink;
    __syncwarp();
  }

  /// out += p v.
  __device__ void gather() {
    for (int n = 0; n < width; n += 16) {
      float* const out = shared.out + first * Shared::out_row + n;
      C c;
      nvcuda::wmma::load_matrix_sync(c, out, Shared::out_row, nvcuda::wmma::mem_row_major);
#pragma unroll
      for (int k = 0; k < wmma_keys; k += 16) {
        A a;
        B<nvcuda::wmma::row_major> b;
        nvcuda::wmma::load_matrix_sync(a, shared.p + first * Shared::p_row + k, Shared::p_row);
        nvcuda::wmma::load_matrix_sync(b, shared.keys_or_values + k * (width + 8) + n, width + 8);
        nvcuda::wmma::mma_sync(c, a, b, c);
      }
      nvcuda::wmma::store_matrix_sync(out, c, Shared::out_row, nvcuda::wmma::mem_row_major);
    }
    __syncwarp();
  }

  Shared& shared;
  int first, row, side;
  float largest = -INFINITY,
        sum = 0;  ///< largest: before it is scaled; sum: of this lane's columns
};

/// A block has 64 queries of a head and goes through the keys 64 at a time.
template <int width>
__global__ void __launch_bounds__(128)
    wmma_forward_kernel(AttentionShape shape, const Half* q, const Half* k, const Half* v,
                        Half* out, float* log_sums) {
  auto& shared = *dynamic_shared<WmmaShared<width>>();
  const Tile<Half, width> queries{reinterpret_cast<Half*>(shared.q)};
  const Tile<Half, width> tile{reinterpret_cast<Half*>(shared.keys_or_values)};
  const std::int64_t blocks = (shape.queries + wmma_rows - 1) / wmma_rows;
  const std::int64_t head = blockIdx.x / blocks;
  const std::int64_t first = (blocks - 1 - blockIdx.x % blocks) * wmma_rows;
  const std::int64_t of_keys = head / shape.group * shape.keys * shape.size;
  const auto arrive = [&](const Half* from, std::int64_t key) {
    tile.copy(from + of_keys + key * shape.size, wmma_keys, shape.keys - key, shape.size);
    end_copies();
  };

  queries.copy(q + (head * shape.queries + first) * shape.size, wmma_rows, shape.queries - first,
               shape.size);
  WmmaRows<width> rows(shared);
  const std::int64_t query = first + rows.row, seen = shape.seen_by(first + wmma_rows - 1);
  for (std::int64_t key = 0; key < seen; key += wmma_keys) {
    __syncthreads();  // nobody needs the last values
    arrive(k, key);
    wait_for_copies<0>();
    __syncthreads();
    rows.score();
    __syncthreads();  // nobody needs these keys
    arrive(v, key);
    const auto sees = min(shape.seen_by(query) - key, std::int64_t{wmma_keys});
    rows.soften(static_cast<int>(sees), shape.scale * log2_of_e);
    wait_for_copies<0>();
    __syncthreads();
    rows.gather();
  }

  const float sum = rows.sum + __shfl_xor_sync(0xFFFFFFFFU, rows.sum, 1);
  if (query >= shape.queries) return;
  const std::int64_t at = head * shape.queries + query;
  if (rows.side == 0) log_sums[at] = rows.largest * shape.scale + logf(sum);
  for (int c = rows.side; c < shape.size; c += 2)
    out[at * shape.size + c] =
        narrow<Half>(shared.out[rows.row * WmmaShared<width>::out_row + c] / sum);
}

}  // namespace stratagem::kernels

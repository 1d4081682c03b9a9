// Attention without tensor cores, for fp32 and for what tensor cores do not take: in fp32, a lane a
// key, or a query, of each step.
#pragma once

#include "kernels/inside/attention_shape.cuh"
#include "kernels/inside/elements.cuh"
#include "kernels/inside/launch.cuh"

namespace stratagem::kernels {

/// Three rows a warp: 64 KiB of shared memory, all that 7.5 has, hold them of heads of 256.
inline constexpr int plain_rows = 12, plain_rows_of_warp = 3, plain_step = 32, plain_most = 256;

/// Shared memory: two operands' rows, and one tile of a step whose rows begin in different banks.
inline std::size_t plain_bytes(std::int64_t size) {
  return sizeof(float) * static_cast<std::size_t>(2 * plain_rows * size + plain_step * (size + 1));
}

/// `rows` rows of `size` elements as floats, zeros beyond `there`; `row` floats apart.
template <typename T>
__device__ void copy_plain(const T* from, int rows, std::int64_t there, int size, int row,
                           float* to) {
  for (int i = threadIdx.x; i < rows * size; i += blockDim.x) {
    const int r = i / size, column = i % size;
    to[r * row + column] = r < there ? widen(from[i]) : 0.0F;
  }
}

/// What a warp has of its rows' results: lane l has columns l, l + 32, ...
struct PlainOut {
  static constexpr int columns = plain_most / 32;
  float values[plain_rows_of_warp][columns] = {};

  /// values += weight of step element i, which lane i holds, times row i of the tile.
  __device__ void add(const float (&weights)[plain_rows_of_warp], const float* tile, int size) {
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < plain_step; ++i) {
#pragma unroll
      for (int r = 0; r < plain_rows_of_warp; ++r) {
        const float weight = __shfl_sync(0xFFFFFFFFU, weights[r], i);
#pragma unroll
        for (int c = 0; c < columns; ++c)
          if (lane + 32 * c < size) values[r][c] += weight * tile[i * (size + 1) + lane + 32 * c];
      }
    }
  }

  /// Writes row r, times `factor`.
  template <typename T>
  __device__ void write(int r, float factor, int size, T* to) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < columns; ++c)
      if (lane + 32 * c < size) to[lane + 32 * c] = narrow<T>(values[r][c] * factor);
  }
};

/// Products of a warp's rows with this lane's row of the tile.
__device__ inline void plain_products(const float* rows, const float* tile, int size,
                                      float (&to)[plain_rows_of_warp]) {
  const float* const mine = tile + threadIdx.x % 32 * (size + 1);
  for (float& x : to) x = 0;
  for (int c = 0; c < size; ++c)
#pragma unroll
    for (int r = 0; r < plain_rows_of_warp; ++r) to[r] += rows[r * size + c] * mine[c];
}

template <typename Combine>
__device__ float over_warp(float x, const Combine& combine) {
  for (int apart = 16; apart > 0; apart /= 2)
    x = combine(x, __shfl_xor_sync(0xFFFFFFFFU, x, apart));
  return x;
}

template <typename T>
__global__ void __launch_bounds__(128)
    plain_forward_kernel(AttentionShape shape, const T* q, const T* k, const T* v, T* out,
                         float* log_sums) {
  float* const plain_shared = dynamic_shared<float>();
  float* const tile = plain_shared + plain_rows * shape.size;
  const std::int64_t blocks = (shape.queries + plain_rows - 1) / plain_rows;
  const std::int64_t head = blockIdx.x / blocks, first = blockIdx.x % blocks * plain_rows;
  const std::int64_t of_keys = head / shape.group * shape.keys * shape.size;
  const int warp_row = threadIdx.x / 32 * plain_rows_of_warp;
  copy_plain(q + (head * shape.queries + first) * shape.size, plain_rows, shape.queries - first,
             shape.size, shape.size, plain_shared);
  PlainOut result;
  float largest[plain_rows_of_warp], sums[plain_rows_of_warp] = {}, p[plain_rows_of_warp];
  for (float& x : largest) x = -INFINITY;
  const std::int64_t seen = shape.seen_by(first + plain_rows - 1);
  for (std::int64_t key = 0; key < seen; key += plain_step) {
    __syncthreads();
    copy_plain(k + of_keys + key * shape.size, plain_step, shape.keys - key, shape.size,
               shape.size + 1, tile);
    __syncthreads();
    plain_products(plain_shared + warp_row * shape.size, tile, shape.size, p);
#pragma unroll
    for (int r = 0; r < plain_rows_of_warp; ++r) {
      const bool sees = key + threadIdx.x % 32 < shape.seen_by(first + warp_row + r);
      const float score = sees ? p[r] * shape.scale : -INFINITY;
      const auto larger = [](float a, float b) { return fmaxf(a, b); };
      const float top = fmaxf(largest[r], over_warp(score, larger));
      const float shrink = __expf(largest[r] - top);
      largest[r] = top;
      p[r] = __expf(score - top);
      sums[r] = sums[r] * shrink + p[r];
      for (float& x : result.values[r]) x *= shrink;
    }
    __syncthreads();
    copy_plain(v + of_keys + key * shape.size, plain_step, shape.keys - key, shape.size,
               shape.size + 1, tile);
    __syncthreads();
    result.add(p, tile, shape.size);
  }
#pragma unroll
  for (int r = 0; r < plain_rows_of_warp; ++r) {
    const float sum = over_warp(sums[r], [](float a, float b) { return a + b; });
    const std::int64_t row = head * shape.queries + first + warp_row + r;
    if (first + warp_row + r >= shape.queries) continue;
    result.write(r, 1.0F / sum, shape.size, out + row * shape.size);
    if (threadIdx.x % 32 == 0) log_sums[row] = largest[r] + logf(sum);
  }
}

/// Rows are keys, and steps are of queries, or the other way round, as in attention_backward.cuh.
template <bool of_keys, typename T>
__global__ void __launch_bounds__(128)
    plain_gradient_kernel(AttentionShape shape, GradientOperands<T> x) {
  float* const plain_shared = dynamic_shared<float>();
  float* const right = plain_shared + plain_rows * shape.size;
  float* const tile = right + plain_rows * shape.size;
  const int size = shape.size, warp_row = threadIdx.x / 32 * plain_rows_of_warp;
  const std::int64_t all = of_keys ? shape.keys : shape.queries;
  const std::int64_t others = of_keys ? shape.queries : shape.keys;
  const std::int64_t blocks = (all + plain_rows - 1) / plain_rows;
  const std::int64_t head = blockIdx.x / blocks, first = blockIdx.x % blocks * plain_rows;
  const std::int64_t at = (head * all + first) * size;
  copy_plain((of_keys ? x.k : x.q) + at, plain_rows, all - first, size, size, plain_shared);
  copy_plain((of_keys ? x.v : x.dout) + at, plain_rows, all - first, size, size, right);
  const std::int64_t begin = of_keys ? shape.first_to_see(first) : 0;
  const std::int64_t end = of_keys ? others : shape.seen_by(first + plain_rows - 1);
  PlainOut from_left, from_right;
  float p[plain_rows_of_warp], ds[plain_rows_of_warp];
  for (std::int64_t h = 0; h < (of_keys ? shape.group : 1); ++h) {
    const std::int64_t other = of_keys ? head * shape.group + h : head / shape.group;
    for (std::int64_t place = begin; place < end; place += plain_step) {
      const std::int64_t from = (other * others + place) * size, there = others - place;
      const auto step = [&](const T* operand) {
        __syncthreads();
        copy_plain(operand + from, plain_step, there, size, size + 1, tile);
        __syncthreads();
      };
      step(of_keys ? x.q : x.k);
      plain_products(plain_shared + warp_row * size, tile, size, p);
      step(of_keys ? x.dout : x.v);
      plain_products(right + warp_row * size, tile, size, ds);
      const std::int64_t mine = place + threadIdx.x % 32;
#pragma unroll
      for (int r = 0; r < plain_rows_of_warp; ++r) {
        const std::int64_t row = first + warp_row + r;
        const std::int64_t query = of_keys ? mine : row, key = of_keys ? row : mine;
        const bool sees = query < shape.queries && key < shape.seen_by(query);
        const std::int64_t of_query = (of_keys ? other : head) * shape.queries + query;
        p[r] = sees ? __expf(p[r] * shape.scale - x.log_sums[of_query]) : 0.0F;
        ds[r] = sees ? p[r] * (ds[r] - x.along[of_query]) : 0.0F;
      }
      if (of_keys) from_right.add(p, tile, size);
      step(of_keys ? x.q : x.k);
      from_left.add(ds, tile, size);
    }
  }
#pragma unroll
  for (int r = 0; r < plain_rows_of_warp; ++r) {
    const std::int64_t row = first + warp_row + r;
    if (row >= all) continue;
    const std::int64_t to = (head * all + row) * size;
    from_left.write(r, shape.scale, size, (of_keys ? x.dk : x.dq) + to);
    if (of_keys) from_right.write(r, 1.0F, size, x.dv + to);
  }
}

}  // namespace stratagem::kernels

// Sums over the rows of a matrix: partial sums of some rows each, then their sum.
#pragma once

#include <algorithm>

#include "kernels/inside/elements.cuh"
#include "kernels/inside/launch.cuh"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

inline constexpr int columns_of_block = 32, rows_of_block = 16;

/// Block (c, r) sums `share` rows of 32 columns: 16 threads a column, whose sums are then added up.
template <typename Value, typename To>
__global__ void column_sums_kernel(Rows shape, std::int64_t share, Value value, To* sums) {
  __shared__ float partial[rows_of_block][columns_of_block];
  const std::int64_t column = blockIdx.x * std::int64_t{columns_of_block} + threadIdx.x;
  const std::int64_t first = blockIdx.y * share;
  const std::int64_t end = first + share < shape.rows ? first + share : shape.rows;
  float sum = 0;
  if (column < shape.columns)
    for (std::int64_t row = first + threadIdx.y; row < end; row += rows_of_block)
      sum += value(row, column);
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int half = rows_of_block / 2; half > 0; half /= 2) {
    if (threadIdx.y < half)
      partial[threadIdx.y][threadIdx.x] += partial[threadIdx.y + half][threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.y == 0 && column < shape.columns)
    sums[blockIdx.y * shape.columns + column] = narrow<To>(partial[0][threadIdx.x]);
}

struct PartialSum {
  const float* partial;
  std::int64_t columns;
  __device__ float operator()(std::int64_t row, std::int64_t column) const {
    return partial[row * columns + column];
  }
};

/// sums (columns) = sum over rows of `value(row, column)`, always in the same order. As many blocks
/// share out the rows as fill the GPU.
template <typename Value, typename To>
void sum_columns(const Stream& stream, const Rows& shape, const Value& value, To* sums) {
  if (shape.columns == 0) return;
  const auto blocks =
      static_cast<unsigned>((shape.columns + columns_of_block - 1) / columns_of_block);
  const std::int64_t wanted = 4 * stream.device().multiprocessors / blocks + 1;
  const std::int64_t parts =
      std::clamp<std::int64_t>(std::min(wanted, shape.rows / (4 * rows_of_block)), 1, 1024);
  const std::int64_t share = (shape.rows + parts - 1) / parts;
  const dim3 threads(columns_of_block, rows_of_block);
  if (parts == 1) {
    start_kernel(stream, &column_sums_kernel<Value, To>, {blocks, threads}, shape, share, value,
                 sums);
  } else {
    float* partial = scratch<float>(stream, parts * shape.columns);
    start_kernel(stream, &column_sums_kernel<Value, float>,
                 {dim3(blocks, static_cast<unsigned>(parts)), threads}, shape, share, value,
                 partial);
    start_kernel(stream, &column_sums_kernel<PartialSum, To>, {blocks, threads},
                 Rows{parts, shape.columns}, parts, PartialSum{partial, shape.columns}, sums);
  }
}

}  // namespace stratagem::kernels

// Products of 16 x 16 by 16 x 8 on tensor cores, and how their operands get into registers.
//
// mma.sync rather than the WMMA of mma.h: PTX says which element lies in which register, so that
// probabilities go from one product straight into the next, while fragments of WMMA would have to
// pass through shared memory. Compute capability 7.5 has it for fp16, 8.0 for bf16 too.
// PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type"; with g = lane / 4 and
// t = lane % 4:
//   A (16, 16): a[0] (g, 2t), a[1] (g + 8, 2t), a[2] (g, 2t + 8), a[3] (g + 8, 2t + 8)
//   B (16, 8):  b0 (2t, g), b1 (2t + 8, g)
//   C (16, 8):  c[0], c[1] (g, 2t), c[2], c[3] (g + 8, 2t)
// where a register has two elements side by side in a row of A, in a column of B.
#pragma once

#include "kernels/inside/elements.cuh"
#include "kernels/inside/launch.cuh"
#include "kernels/inside/ptx.cuh"

namespace stratagem::kernels {

/// Two neighbours of a row of A, rounded.
template <typename T>
__device__ unsigned pair_of(float low, float high) {
  if constexpr (std::is_same_v<T, Half>) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
  }
}

/// Rows of `width` elements in shared memory; eight more between them, so that eight rows lie in
/// different banks. width / 8 is even, so that (width + 8) / 8 is odd.
template <typename T, int width>
struct Tile {
  static constexpr int row = width + 8;

  __device__ T* at(int r, int column) const { return data + r * row + column; }

  /// Begins to copy `rows` rows, of which `there` exist, of `size` elements each: zeros elsewhere.
  __device__ void copy(const T* from, int rows, std::int64_t there, int size) const {
    constexpr int packets = width / 8;
    for (int i = threadIdx.x; i < rows * packets; i += blockDim.x) {
      const int r = i / packets, column = i % packets * 8;
      const bool inside = r < there && column < size;
      copy_16(at(r, column), inside ? from + std::int64_t{r} * size + column : from, inside);
    }
  }

  /// A of 16 rows and columns.
  __device__ void load_a(unsigned (&a)[4], int first_row, int first_column) const {
    const int lane = threadIdx.x % 32;
    load_matrices(a, at(first_row + lane % 16, first_column + lane / 16 * 8));
  }
  /// Two Bs side by side, of what has columns of B as its rows: b[0], b[1] of the first 8 rows.
  __device__ void load_b(unsigned (&b)[4], int first_row, int first_column) const {
    const int lane = threadIdx.x % 32;
    load_matrices(b, at(first_row + lane % 8 + lane / 16 * 8, first_column + lane / 8 % 2 * 8));
  }
  /// Two Bs side by side, of what has rows of B as its rows.
  __device__ void load_b_by_rows(unsigned (&b)[4], int first_row, int first_column) const {
    const int lane = threadIdx.x % 32;
    load_transposed(b, at(first_row + lane % 16, first_column + lane / 16 * 8));
  }

  T* data;
};

}  // namespace stratagem::kernels

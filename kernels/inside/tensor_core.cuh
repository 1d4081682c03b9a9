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

namespace stratagem::kernels {

/// Whether this architecture gets code for tiles of so many columns: others are never asked. 7.5
/// has neither bf16 nor shared memory for the widest.
template <typename T, int width>
constexpr bool on_tensor_cores() {
#if __CUDA_ARCH__ >= 800
  return true;
#elif __CUDA_ARCH__ >= 750
  return std::is_same_v<T, Half> && width <= 128;
#else
  return false;
#endif
}

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

/// 2^x by the unit for it: within 2 units in the last place, and 0 for what is too small.
__device__ inline float power_of_2(float x) {
  float result = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// C += A B.
template <typename T>
__device__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, Half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#elif __CUDA_ARCH__ >= 750
  asm volatile(  // the left and the right half of A, each with its half of B
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

/// Four matrices of 8 x 8 from shared memory: lane 8i + r gives the address of row r of matrix i,
/// and gets elements 2t, 2t + 1 of its row g.
template <typename T>
__device__ void load_matrices(unsigned (&to)[4], const T* row) {
#if __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row))));
#endif
}

/// The same, each matrix transposed.
template <typename T>
__device__ void load_transposed(unsigned (&to)[4], const T* row) {
#if __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row))));
#endif
}

/// 16 bytes to shared memory, zeros unless `there`; since 8.0 the thread does not wait for them.
__device__ inline void copy_16(void* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(there ? 16 : 0)
               : "memory");
#else
  *static_cast<int4*>(to) = there ? *static_cast<const int4*>(from) : make_int4(0, 0, 0, 0);
#endif
}

/// Ends a group of copies.
__device__ inline void end_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits for this thread's copies, except those of the last `open` groups.
template <int open>
__device__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory");
#endif
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

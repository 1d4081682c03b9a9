// PTX instructions: products on tensor cores, loading their operands, asynchronous copies. Where a
// processor stands in for a GPU, tests/kernels/emulated has its own file of this name.
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

}  // namespace stratagem::kernels

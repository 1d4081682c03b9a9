// Starts kernels, and gives them their shared memory. Where a processor stands in for a GPU,
// tests/kernels/emulated has its own file of this name.
#pragma once

#include "kernels/inside/stream.cuh"

namespace stratagem::kernels {

/// `shared`: bytes of dynamic_shared() that each block has.
struct Grid {
  dim3 blocks, threads;
  std::size_t shared = 0;
};

/// Starts `kernel` on the stream. Throws DeviceError if CUDA refuses.
template <typename... Parameters, typename... Arguments>
void start_kernel(const Stream& stream, void (*kernel)(Parameters...), const Grid& grid,
                  const Arguments&... arguments) {
  if (grid.shared > 0)  // more than 48 KiB must be asked for
    STRATAGEM_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                         cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(grid.shared)));
  kernel<<<grid.blocks, grid.threads, grid.shared, stream.inside().stream>>>(arguments...);
  STRATAGEM_CHECK(cudaGetLastError());
}

/// The shared memory that the kernel was started with; begins at a multiple of 32 bytes.
template <typename T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(32) unsigned char shared_bytes[];
  return reinterpret_cast<T*>(shared_bytes);
}

}  // namespace stratagem::kernels

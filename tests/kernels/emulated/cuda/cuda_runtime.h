// What kernels/ uses of CUDA, on this processor: its words for code, its indices, barriers and
// shuffles, and its runtime's functions.
#pragma once

#include <math.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tests/kernels/emulated/grid.hpp"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 800

struct dim3 {
  constexpr dim3(unsigned across = 1, unsigned down = 1, unsigned deep = 1)  // NOLINT
      : x(across), y(down), z(deep) {}
  unsigned x, y, z;
};

#define threadIdx (::stratagem::emulated::thread_index())
#define blockIdx (::stratagem::emulated::block_index())
#define blockDim (::stratagem::emulated::block_size())
#define gridDim (::stratagem::emulated::grid_size())

#define STRATAGEM_HERE \
  { __builtin_FILE(), __builtin_LINE() }

inline void __syncthreads(const stratagem::emulated::Site& here = STRATAGEM_HERE) {
  stratagem::emulated::meet_block(false, here);
}
inline int __syncthreads_or(int answer, const stratagem::emulated::Site& here = STRATAGEM_HERE) {
  return stratagem::emulated::meet_block(answer != 0, here) ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFU,
                       const stratagem::emulated::Site& here = STRATAGEM_HERE) {
  stratagem::emulated::meet_warp(mask, nullptr, nullptr, true, here);
}

/// `value` of lane `from`, which must take part.
template <typename T>
T __shfl_sync(unsigned mask, T value, int from,
              const stratagem::emulated::Site& here = STRATAGEM_HERE) {
  struct Brought {
    T value;
    int from;
    T result;
    bool there;
  } mine{value, from, T{}, false};
  const auto exchange = [](stratagem::emulated::OfLanes of_lanes, unsigned all) {
    for (int lane = 0; lane < 32; ++lane) {
      if ((all >> lane & 1U) == 0) continue;
      auto& to = *static_cast<Brought*>(of_lanes[lane]);
      to.there = (all >> (to.from & 31) & 1U) != 0;
      if (to.there) to.result = static_cast<Brought*>(of_lanes[to.from & 31])->value;
    }
  };
  stratagem::emulated::meet_warp(mask, &mine, exchange, false, here);
  if (!mine.there) {
    stratagem::emulated::complain("asks a lane that does not take part in a shuffle");
    stratagem::emulated::stop();
  }
  return mine.result;
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int apart,
                  const stratagem::emulated::Site& here = STRATAGEM_HERE) {
  return __shfl_sync(mask, value,
                     static_cast<int>(stratagem::emulated::thread_of_block() % 32) ^ apart, here);
}
#undef STRATAGEM_HERE

#define __expf(x) expf(x)
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorLaunchFailure = 719
};
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem;
  int major, minor, multiProcessorCount, l2CacheSize;
  std::size_t sharedMemPerBlockOptin;
};
enum cudaDeviceAttr { cudaDevAttrClockRate, cudaDevAttrMemoryClockRate };
enum cudaMemcpyKind { cudaMemcpyDefault };
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr int CUDART_VERSION = 12000;

cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all);
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaMallocHost(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);

/// What a launch comes to: the error is told by cudaGetLastError().
void emulated_launch(const dim3& blocks, const dim3& threads, std::size_t shared,
                     void (*kernel)(const void* arguments), const void* arguments);

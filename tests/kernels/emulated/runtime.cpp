// The functions of CUDA's runtime that kernels/ calls. All that is asked for is done at once.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "tests/kernels/emulated/cuda/cuda_runtime.h"
#include "tests/kernels/emulated/memory.hpp"

using namespace stratagem::emulated;

struct EmulatedEvent {
  std::chrono::steady_clock::time_point when;
};

namespace {

cudaError_t last_error = cudaSuccess;
std::string& last_fault() {
  static std::string text;
  return text;
}

cudaError_t done(cudaError_t error = cudaSuccess) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t allocated(void** memory, std::size_t bytes) {
  *memory = allocate(bytes);
  return done(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t released(void* memory) {
  release(memory);
  return done();
}

/// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
bool may_be_launched(const dim3& blocks, const dim3& threads, std::size_t shared) {
  const std::uint64_t count = std::uint64_t{threads.x} * threads.y * threads.z;
  return blocks.x > 0 && blocks.x < 1U << 31 && blocks.y > 0 && blocks.y < 1U << 16 &&
         blocks.z > 0 && blocks.z < 1U << 16 && count > 0 && count <= 1024 && threads.z <= 64 &&
         shared <= most_shared;
}

}  // namespace

void emulated_launch(const dim3& blocks, const dim3& threads, std::size_t shared,
                     void (*kernel)(const void*), const void* arguments) {
  if (!may_be_launched(blocks, threads, shared)) {
    done(cudaErrorInvalidConfiguration);
    return;
  }
  const std::string fault = run({blocks.x, blocks.y, blocks.z}, {threads.x, threads.y, threads.z},
                                shared, kernel, arguments);
  if (fault.empty()) return;
  last_fault() = fault;
  done(cudaErrorLaunchFailure);
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorLaunchFailure:
      return last_fault().c_str();
  }
  return "unknown error";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return done();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {.name = "emulated",
                 .uuid = {},
                 .totalGlobalMem = memory_size,
                 .major = 8,
                 .minor = 0,
                 .multiProcessorCount = 4,
                 .l2CacheSize = 1 << 20,
                 .sharedMemPerBlockOptin = most_shared};
  return done();
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 0;
  return done();
}
cudaError_t cudaSetDevice(int device) {
  return done(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return done();
}
cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all) {
  *left = memory_left();
  *all = memory_size;
  return done();
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return allocated(memory, bytes); }
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) { return allocated(memory, bytes); }
cudaError_t cudaFree(void* memory) { return released(memory); }
cudaError_t cudaFreeHost(void* memory) { return released(memory); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  if (!may_be_copied(to, bytes) || !may_be_copied(from, bytes)) return done(cudaErrorInvalidValue);
  std::memcpy(to, from, bytes);
  return done();
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  if (!may_be_copied(memory, bytes)) return done(cudaErrorInvalidValue);
  std::memset(memory, value, bytes);
  return done();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return done();
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return done(); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return done(); }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new EmulatedEvent;
  return done();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  event->when = std::chrono::steady_clock::now();
  return done();
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return done(); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->when - begin->when).count();
  return done();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return done();
}

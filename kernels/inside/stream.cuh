// What a stream keeps, and how calls of CUDA are checked.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "kernels/device.hpp"

namespace stratagem::kernels {

struct Stream::Inside {
  Device device;
  cudaStream_t stream = nullptr;
  DeviceArray<std::byte> scratch;
  std::shared_ptr<void> products;  ///< what gemm.cu keeps
};

/// Throws DeviceError with the call and CUDA's words, DeviceOutOfMemory if that is what it was.
void check(cudaError_t result, const char* call);
#define STRATAGEM_CHECK(call) ::stratagem::kernels::check(call, #call)

/// Memory for intermediate results of one kernel, as long as the next one on the stream has not
/// asked.
template <typename T>
T* scratch(const Stream& stream, std::int64_t elements) {
  DeviceArray<std::byte>& have = stream.inside().scratch;
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(T);
  if (have.size() < bytes) {
    have = DeviceArray<std::byte>();
    have = DeviceArray<std::byte>(bytes);
  }
  return reinterpret_cast<T*>(have.data());
}

}  // namespace stratagem::kernels

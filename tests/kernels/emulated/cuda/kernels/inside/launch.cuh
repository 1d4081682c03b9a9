// kernels/inside/launch.cuh, on this processor.
#pragma once

#include <tuple>
#include <utility>

#include "kernels/inside/stream.cuh"
#include "tests/kernels/emulated/memory.hpp"

namespace stratagem::kernels {

struct Grid {
  dim3 blocks, threads;
  std::size_t shared = 0;
};

/// A kernel and what it is called with; every thread has copies of that.
template <typename... Parameters>
struct Call {
  void (*kernel)(Parameters...);
  std::tuple<Parameters...> arguments;

  [[gnu::no_sanitize_thread]] static void run(const void* call) {
    copy_and_call(*static_cast<const Call*>(call), std::index_sequence_for<Parameters...>());
  }
  /// Not watched: what is copied is the host's.
  template <std::size_t... i>
  [[gnu::no_sanitize_thread]] static void copy_and_call(const Call& call,
                                                        std::index_sequence<i...>) {
    call.kernel(std::get<i>(call.arguments)...);
  }
};

template <typename... Parameters, typename... Arguments>
void start_kernel(const Stream&, void (*kernel)(Parameters...), const Grid& grid,
                  const Arguments&... arguments) {
  const Call<Parameters...> call{kernel, {arguments...}};
  emulated_launch(grid.blocks, grid.threads, grid.shared, &Call<Parameters...>::run, &call);
  STRATAGEM_CHECK(cudaGetLastError());
}

template <typename T>
__device__ T* dynamic_shared() {
  return reinterpret_cast<T*>(emulated::shared_bytes());
}

}  // namespace stratagem::kernels

// NCCL, loaded when a group of GPUs is first made: no program needs it to start.
#pragma once

#include <dlfcn.h>
#include <nccl.h>

#include <string>

#include "kernels/device.hpp"

namespace stratagem::kernels {

#define STRATAGEM_NCCL_FUNCTIONS(use) \
  use(ncclGetVersion);                \
  use(ncclGetUniqueId);               \
  use(ncclGetErrorString);            \
  use(ncclGetLastError);              \
  use(ncclCommInitRankConfig);        \
  use(ncclCommGetAsyncError);         \
  use(ncclCommFinalize);              \
  use(ncclCommDestroy);               \
  use(ncclCommAbort);                 \
  use(ncclGroupStart);                \
  use(ncclGroupEnd);                  \
  use(ncclAllReduce);                 \
  use(ncclAllGather);                 \
  use(ncclReduceScatter);             \
  use(ncclBroadcast);                 \
  use(ncclReduce);                    \
  use(ncclSend);                      \
  use(ncclRecv)

/// The library's functions, by their own names.
struct Nccl {
#define STRATAGEM_DECLARE(function) decltype(&::function) function = nullptr
  STRATAGEM_NCCL_FUNCTIONS(STRATAGEM_DECLARE);
#undef STRATAGEM_DECLARE

  /// Looks where the dynamic linker looks, and where the toolkit was that this was built with.
  /// Throws DeviceError if the library is not there, or too old to be asked without blocking.
  static Nccl load(const std::string& name) {
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw DeviceError("collectives of GPUs need NCCL, which cannot be loaded: " +
                        std::string(dlerror()));
    const auto find = [&]<typename Function>(Function*& function, const char* called) {
      function = reinterpret_cast<Function*>(dlsym(library, called));
      if (function == nullptr)
        throw DeviceError("NCCL of " + name + " is older than 2.14: " + dlerror());
    };
    Nccl nccl;
#define STRATAGEM_FIND(function) find(nccl.function, #function)
    STRATAGEM_NCCL_FUNCTIONS(STRATAGEM_FIND);
#undef STRATAGEM_FIND
    return nccl;
  }
};

inline const Nccl& nccl() {
  static const Nccl loaded = Nccl::load("libnccl.so." + std::to_string(NCCL_MAJOR));
  return loaded;
}

}  // namespace stratagem::kernels

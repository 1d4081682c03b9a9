// cublasLt, loaded when a product first asks for it: linked, its half a gigabyte would delay every
// start of every program by a tenth of a second, and no program would start without it.
#pragma once

#include <cublasLt.h>
#include <dlfcn.h>

#include <string>

#include "kernels/device.hpp"

namespace stratagem::kernels {

#define STRATAGEM_CUBLASLT_FUNCTIONS(use)    \
  use(cublasLtCreate);                       \
  use(cublasLtDestroy);                      \
  use(cublasLtGetStatusString);              \
  use(cublasLtMatmul);                       \
  use(cublasLtMatmulAlgoGetHeuristic);       \
  use(cublasLtMatmulDescCreate);             \
  use(cublasLtMatmulDescDestroy);            \
  use(cublasLtMatmulDescSetAttribute);       \
  use(cublasLtMatmulPreferenceCreate);       \
  use(cublasLtMatmulPreferenceDestroy);      \
  use(cublasLtMatmulPreferenceSetAttribute); \
  use(cublasLtMatrixLayoutCreate);           \
  use(cublasLtMatrixLayoutDestroy);          \
  use(cublasLtMatrixLayoutSetAttribute)

/// The library's functions, by their own names.
struct CublasLt {
  /// Looks where the dynamic linker looks, and where the toolkit was that this was built with.
  /// Throws DeviceError if the library is not there.
  CublasLt() {
    const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw DeviceError(dlerror());
    const auto find = [&]<typename Function>(Function*& function, const char* called) {
      function = reinterpret_cast<Function*>(dlsym(library, called));
      if (function == nullptr) throw DeviceError(dlerror());
    };
#define STRATAGEM_FIND(function) find(function, #function)
    STRATAGEM_CUBLASLT_FUNCTIONS(STRATAGEM_FIND);
#undef STRATAGEM_FIND
  }

#define STRATAGEM_DECLARE(function) decltype(&::function) function = nullptr
  STRATAGEM_CUBLASLT_FUNCTIONS(STRATAGEM_DECLARE);
#undef STRATAGEM_DECLARE
};

inline const CublasLt& cublas_lt() {
  static const CublasLt loaded;
  return loaded;
}

}  // namespace stratagem::kernels

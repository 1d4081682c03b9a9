// kernels/inside/cublas_lt.cuh, on this processor: nothing to load.
#pragma once

#include <cublasLt.h>

#include "kernels/device.hpp"

namespace stratagem::kernels {

struct CublasLt {
#define STRATAGEM_KEEP(function) decltype(&::function) function = &::function
  STRATAGEM_KEEP(cublasLtCreate);
  STRATAGEM_KEEP(cublasLtDestroy);
  STRATAGEM_KEEP(cublasLtGetStatusString);
  STRATAGEM_KEEP(cublasLtMatmul);
  STRATAGEM_KEEP(cublasLtMatmulAlgoGetHeuristic);
  STRATAGEM_KEEP(cublasLtMatmulDescCreate);
  STRATAGEM_KEEP(cublasLtMatmulDescDestroy);
  STRATAGEM_KEEP(cublasLtMatmulDescSetAttribute);
  STRATAGEM_KEEP(cublasLtMatmulPreferenceCreate);
  STRATAGEM_KEEP(cublasLtMatmulPreferenceDestroy);
  STRATAGEM_KEEP(cublasLtMatmulPreferenceSetAttribute);
  STRATAGEM_KEEP(cublasLtMatrixLayoutCreate);
  STRATAGEM_KEEP(cublasLtMatrixLayoutDestroy);
  STRATAGEM_KEEP(cublasLtMatrixLayoutSetAttribute);
#undef STRATAGEM_KEEP
};

inline const CublasLt& cublas_lt() {
  static const CublasLt linked;
  return linked;
}

}  // namespace stratagem::kernels

// cublasLt's functions, by what its reference says of them: matrices column by column, D = alpha *
// op(A) op(B) + beta * C, sums in fp32.
#include <cublasLt.h>

#include <cstring>
#include <type_traits>

#include "kernels/half.hpp"
#include "tests/kernels/emulated/memory.hpp"

namespace {

using stratagem::kernels::BFloat16;
using stratagem::kernels::Half;

template <typename Object, typename... Values>
cublasStatus_t create(Object** object, Values... values) {
  *object = new Object{values...};
  return CUBLAS_STATUS_SUCCESS;
}
template <typename Object>
cublasStatus_t destroy(Object* object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

/// What is set is as large as it is given.
template <typename Field>
cublasStatus_t set(Field& field, const void* value, std::size_t size) {
  if (size != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

struct Matrix {
  const void* data;
  const EmulatedLayout& layout;
  bool transposed;

  [[nodiscard]] std::uint64_t rows() const { return transposed ? layout.columns : layout.rows; }
  [[nodiscard]] std::uint64_t columns() const { return transposed ? layout.rows : layout.columns; }
  [[nodiscard]] std::size_t place(std::int64_t matrix, std::uint64_t row,
                                  std::uint64_t column) const {
    if (transposed) std::swap(row, column);
    return static_cast<std::size_t>(matrix * layout.next) + row +
           column * static_cast<std::size_t>(layout.distance);
  }
  /// Whether all of it lies in the GPU's memory, and columns lie behind each other.
  [[nodiscard]] bool is_there(std::size_t size) const {
    const std::size_t last = static_cast<std::size_t>((layout.batch - 1) * layout.next) +
                             (layout.columns - 1) * static_cast<std::size_t>(layout.distance) +
                             layout.rows;
    return layout.distance >= static_cast<std::int64_t>(layout.rows) &&
           stratagem::emulated::may_be_copied(data, last * size);
  }
};

template <typename T>
void multiply(const Matrix& a, const Matrix& b, const Matrix& c, float alpha, float beta, T* d) {
  for (std::int64_t matrix = 0; matrix < c.layout.batch; ++matrix)
    for (std::uint64_t column = 0; column < c.columns(); ++column)
      for (std::uint64_t row = 0; row < c.rows(); ++row) {
        float sum = 0;
        for (std::uint64_t k = 0; k < a.columns(); ++k)
          sum += static_cast<float>(static_cast<const T*>(a.data)[a.place(matrix, row, k)]) *
                 static_cast<float>(static_cast<const T*>(b.data)[b.place(matrix, k, column)]);
        const std::size_t at = c.place(matrix, row, column);
        const float there =
            beta == 0 ? 0.0F : static_cast<float>(static_cast<const T*>(c.data)[at]);
        d[at] = T(alpha * sum + beta * there);
      }
}

bool aligned(const void* memory, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(memory) % bytes == 0;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS        ? "success"
         : status == CUBLAS_STATUS_ALLOC_FAILED ? "the resource allocation failed"
                                                : "an unsupported value or parameter was passed";
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t distance) {
  return create(layout, type, rows, columns, distance);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t size) {
  return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set(layout->batch, value, size)
                                                         : set(layout->next, value, size);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  return create(description);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return destroy(description);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t size) {
  return set(attribute == CUBLASLT_MATMUL_DESC_TRANSA ? description->a : description->b, value,
             size);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t size) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference->workspace, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(preference->aligned.a, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(preference->aligned.b, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(preference->aligned.c, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference->aligned.d, value, size);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* advice, int* found) {
  *found = wanted;
  advice->algo = preference->aligned;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_size, cudaStream_t) {
  const Matrix left{a, *a_layout, description->a == CUBLAS_OP_T};
  const Matrix right{b, *b_layout, description->b == CUBLAS_OP_T};
  const Matrix sum{c, *c_layout, false};
  const bool fits = left.rows() == sum.rows() && right.columns() == sum.columns() &&
                    left.columns() == right.rows() && a_layout->batch == c_layout->batch &&
                    b_layout->batch == c_layout->batch;
  const std::size_t size = c_layout->type == CUDA_R_32F ? 4 : 2;
  const bool there = left.is_there(size) && right.is_there(size) && sum.is_there(size) &&
                     stratagem::emulated::may_be_copied(workspace, workspace_size);
  const bool as_advised = aligned(a, algorithm->a) && aligned(b, algorithm->b) &&
                          aligned(c, algorithm->c) && aligned(d, algorithm->d);
  if (!fits || !there || !as_advised) return CUBLAS_STATUS_INVALID_VALUE;
  const auto run = [&]<typename T>(T* to) {
    multiply(left, right, sum, *static_cast<const float*>(alpha), *static_cast<const float*>(beta),
             to);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (c_layout->type) {
    case CUDA_R_32F:
      return run(static_cast<float*>(d));
    case CUDA_R_16F:
      return run(static_cast<Half*>(d));
    case CUDA_R_16BF:
      return run(static_cast<BFloat16*>(d));
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

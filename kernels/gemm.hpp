// Matrix products, batched or not.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"
#include "kernels/operand.hpp"

namespace stratagem::kernels {

/// `batch` products C (m, n) = alpha * A (m, k) * B (k, n) + beta * C of row-major matrices. A
/// transposed operand lies in memory as (k, m), or (n, k). `row_*` is the distance between rows of
/// what lies in memory, `next_*` that between matrices of the batch, in elements; 0: dense.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transpose_a = false, transpose_b = false;
  std::int64_t row_a = 0, row_b = 0, row_c = 0;
  std::int64_t next_a = 0, next_b = 0, next_c = 0;
  double alpha = 1, beta = 0;
};

/// Each operand holds all matrices that the shape speaks of, or more. With beta = 0 C is not read.
/// OpenBLAS computes, on one thread. Throws BrokenPromise for an operand that is too small.
template <typename T>
void gemm(const Gemm& shape, In<T> a, In<T> b, Out<T> c);

/// Whether products of fp32 on a GPU may round what they multiply to tf32, 11 bits of significand,
/// which tensor cores of compute capability 8.0 and more know. Types of two bytes have none of it.
enum class Tf32 { off, on };

/// cublasLt computes, sums in fp32, with the algorithm that it advises for the first product of a
/// shape, its strides and its operands' alignment; later ones take it from a table of the stream.
/// Throws DeviceError where cublasLt has none.
template <typename T>
void gemm(const Stream& stream, const Gemm& shape, DeviceIn<T> a, DeviceIn<T> b, DeviceOut<T> c,
          Tf32 tf32 = Tf32::off);

/// The same by three loops, sums in fp64: what the others are held to.
template <typename T>
void gemm_reference(const Gemm& shape, In<T> a, In<T> b, Out<T> c);

}  // namespace stratagem::kernels

// Matrix products by cublasLt, with a table of what was chosen for each shape.
#include <array>
#include <unordered_map>

#include "kernels/gemm.hpp"
#include "kernels/inside/cublas_lt.cuh"
#include "kernels/inside/elements.cuh"
#include "kernels/inside/expect_type.cuh"
#include "kernels/inside/gemm_layouts.hpp"
#include "kernels/inside/launch.cuh"

namespace stratagem::kernels {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

void check(cublasStatus_t result, const char* call) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = std::string(call) + ": " + cublas_lt().cublasLtGetStatusString(result);
  if (result == CUBLAS_STATUS_ALLOC_FAILED) throw DeviceOutOfMemory(text);
  throw DeviceError(text);
}
#define CHECK_CUBLAS(call) check(call, #call)

template <typename T>
constexpr cudaDataType_t type_of = std::is_same_v<T, Half>
                                       ? CUDA_R_16F
                                       : (std::is_same_v<T, BFloat16> ? CUDA_R_16BF : CUDA_R_32F);

/// All that an algorithm may depend on: the shape, strides, alignments, types.
using Key = std::array<std::int64_t, 14>;

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const std::int64_t word : key)
      hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15U;
    return hash ^ (hash >> 32);
  }
};

/// How often an address may be halved, up to 256 bytes: cublasLt has quicker algorithms for aligned
/// operands.
std::int64_t alignment_of(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory) | 256U;
  return static_cast<std::int64_t>(address & (~address + 1));
}

struct Layout {
  Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, const MatrixLayout& in,
         std::int64_t batch) {
    CHECK_CUBLAS(
        cublas_lt().cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                               static_cast<std::uint64_t>(columns), in.row));
    const auto count = static_cast<std::int32_t>(batch);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, in.next);
  }
  ~Layout() { static_cast<void>(cublas_lt().cublasLtMatrixLayoutDestroy(layout)); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  template <typename Value>
  void set(cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
    CHECK_CUBLAS(
        cublas_lt().cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
  }

  cublasLtMatrixLayout_t layout = nullptr;
};

struct Description {
  Description(const Gemm& g, cublasComputeType_t compute) {
    CHECK_CUBLAS(cublas_lt().cublasLtMatmulDescCreate(&description, compute, CUDA_R_32F));
    // Row by row in memory is column by column of the transposed: C^T = B^T A^T.
    set(CUBLASLT_MATMUL_DESC_TRANSA, g.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, g.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  }
  ~Description() { static_cast<void>(cublas_lt().cublasLtMatmulDescDestroy(description)); }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  void set(cublasLtMatmulDescAttributes_t attribute, cublasOperation_t value) {
    CHECK_CUBLAS(
        cublas_lt().cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
  }

  cublasLtMatmulDesc_t description = nullptr;
};

/// What cublasLt may look for.
struct Preference {
  explicit Preference(const Key& key) {
    CHECK_CUBLAS(cublas_lt().cublasLtMatmulPreferenceCreate(&preference));
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(key[11]));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(key[10]));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(key[12]));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(key[12]));
  }
  ~Preference() { static_cast<void>(cublas_lt().cublasLtMatmulPreferenceDestroy(preference)); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  template <typename Value>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
    CHECK_CUBLAS(cublas_lt().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value,
                                                                  sizeof value));
  }

  cublasLtMatmulPreference_t preference = nullptr;
};

/// A product that is ready to run.
struct Product {
  Product(const Gemm& g, const Layouts& in, cudaDataType_t type, cublasComputeType_t compute)
      : description(g, compute),
        a(type, g.transpose_b ? g.k : g.n, g.transpose_b ? g.n : g.k, in.b, g.batch),
        b(type, g.transpose_a ? g.m : g.k, g.transpose_a ? g.k : g.m, in.a, g.batch),
        c(type, g.n, g.m, in.c, g.batch) {}

  Description description;
  Layout a, b, c;  ///< as cublasLt sees them: its A is our B
  cublasLtMatmulAlgo_t algorithm{};
};

/// A stream's handle, workspace and table.
struct Products {
  Products() : workspace(workspace_bytes) { CHECK_CUBLAS(cublas_lt().cublasLtCreate(&handle)); }
  ~Products() { static_cast<void>(cublas_lt().cublasLtDestroy(handle)); }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  void advise(Product& product, const Key& key) const {
    const Preference preference(key);
    cublasLtMatmulHeuristicResult_t advice{};
    int found = 0;
    CHECK_CUBLAS(cublas_lt().cublasLtMatmulAlgoGetHeuristic(
        handle, product.description.description, product.a.layout, product.b.layout,
        product.c.layout, product.c.layout, preference.preference, 1, &advice, &found));
    if (found == 0) throw DeviceError("cublasLt has no algorithm for a product of this shape");
    product.algorithm = advice.algo;
  }

  cublasLtHandle_t handle = nullptr;
  DeviceArray<std::byte> workspace;
  std::unordered_map<Key, Product, KeyHash> table;
};

Products& products_of(const Stream& stream) {
  std::shared_ptr<void>& kept = stream.inside().products;
  if (!kept) kept = std::make_shared<Products>();
  return *static_cast<Products*>(kept.get());
}

/// C = beta * C: a sum over nothing.
template <typename T>
__global__ void scale_kernel(Gemm g, MatrixLayout in, T* c) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= g.batch * g.m * g.n) return;
  const std::int64_t matrix = i / (g.m * g.n), row = i / g.n % g.m, column = i % g.n;
  T& element = c[matrix * in.next + row * in.row + column];
  element = narrow<T>(g.beta == 0 ? 0.0F : static_cast<float>(g.beta) * widen(element));
}

template <typename T>
void scale(const Stream& stream, const Gemm& g, const MatrixLayout& in, T* c) {
  const auto blocks = static_cast<unsigned>((g.batch * g.m * g.n + 255) / 256);
  start_kernel(stream, &scale_kernel<T>, {blocks, 256}, g, in, c);
}

}  // namespace

template <typename T>
void gemm(const Stream& stream, const Gemm& g, DeviceIn<T> a, DeviceIn<T> b, DeviceOut<T> c,
          Tf32 tf32) {
  expect_type<T>(stream);
  const Layouts in = checked_layouts(g, a, b, c);
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  if (g.k == 0) return scale(stream, g, in.c, c.data());
  const bool rounds = std::is_same_v<T, float> && tf32 == Tf32::on;
  const Key key = {
      g.m,
      g.n,
      g.k,
      g.batch,
      in.a.row,
      in.b.row,
      in.c.row,
      in.a.next,
      in.b.next,
      in.c.next,
      alignment_of(a.data()),
      alignment_of(b.data()),
      alignment_of(c.data()),
      type_of<T> * 8 + (rounds ? 4 : 0) + (g.transpose_a ? 2 : 0) + (g.transpose_b ? 1 : 0)};
  Products& products = products_of(stream);
  auto found = products.table.find(key);
  if (found == products.table.end()) {
    const auto compute = rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    found = products.table.try_emplace(key, g, in, type_of<T>, compute).first;
    try {
      products.advise(found->second, key);
    } catch (...) {
      products.table.erase(found);
      throw;
    }
  }
  const Product& product = found->second;
  const auto alpha = static_cast<float>(g.alpha), beta = static_cast<float>(g.beta);
  CHECK_CUBLAS(cublas_lt().cublasLtMatmul(
      products.handle, product.description.description, &alpha, b.data(), product.a.layout,
      a.data(), product.b.layout, &beta, c.data(), product.c.layout, c.data(), product.c.layout,
      &product.algorithm, products.workspace.data(), workspace_bytes, stream.inside().stream));
}

#define INSTANTIATE(T) \
  template void gemm<T>(const Stream&, const Gemm&, DeviceIn<T>, DeviceIn<T>, DeviceOut<T>, Tf32);
STRATAGEM_FOR_DEVICE_ELEMENTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::kernels

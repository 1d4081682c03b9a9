// Kernels on a GPU: what our dispatch adds to cublasLt's own time, and the rate of fused attention.
#include <cublasLt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/half.hpp"
#include "kernels/inside/cublas_lt.cuh"
#include "kernels/inside/stream.cuh"
#include "kernels/philox.hpp"

namespace {

using namespace stratagem;
using namespace stratagem::kernels;

void check_cublas(cublasStatus_t result) {
  if (result != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(cublas_lt().cublasLtGetStatusString(result));
}

/// Numbers in [-1, 1) on the GPU.
template <typename T>
DeviceArray<T> random_array(const Stream& stream, std::int64_t size) {
  std::vector<T> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = T(2 * uniform({.seed = 1}, i % 5'000'011) - 1);
  return on_device(stream, values);
}

double median(std::vector<double> samples) {
  std::ranges::sort(samples);
  return samples[samples.size() / 2];
}

/// Seconds of `work` by events, the median of several.
double gpu_time(const Stream& stream, int times, const std::function<void()>& work) {
  std::vector<double> samples;
  for (int sample = 0; sample < 9; ++sample) {
    Event begin, end;
    begin.record(stream);
    for (int i = 0; i < times; ++i) work();
    end.record(stream);
    end.wait();
    samples.push_back(end.since(begin).value / times);
  }
  return median(samples);
}

/// Seconds that the host takes to ask for `work`, the median of several, with room in the queue.
double host_time(const Stream& stream, const std::function<void()>& work) {
  std::vector<double> samples;
  constexpr int times = 200;
  for (int sample = 0; sample < 25; ++sample) {
    stream.synchronise();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) work();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    samples.push_back(spent.count() / times);
  }
  stream.synchronise();
  return median(samples);
}

/// cublasLt alone, with all that it needs made beforehand: C (n, n) = A B^T, row by row.
class Bare {
 public:
  Bare(const Stream& stream, std::int64_t n) : stream_(stream), workspace_(std::size_t{32} << 20) {
    check_cublas(lt_.cublasLtCreate(&handle_));
    check_cublas(lt_.cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check_cublas(lt_.cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                    &transposed, sizeof transposed));
    const auto size = static_cast<std::uint64_t>(n);
    check_cublas(lt_.cublasLtMatrixLayoutCreate(&layout_, CUDA_R_16F, size, size, n));
    cublasLtMatmulPreference_t preference = nullptr;
    check_cublas(lt_.cublasLtMatmulPreferenceCreate(&preference));
    const std::uint64_t bytes = workspace_.size();
    check_cublas(lt_.cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
    cublasLtMatmulHeuristicResult_t advice{};
    int found = 0;
    check_cublas(lt_.cublasLtMatmulAlgoGetHeuristic(
        handle_, description_, layout_, layout_, layout_, layout_, preference, 1, &advice, &found));
    if (found == 0) throw DeviceError("cublasLt has no algorithm");
    algorithm_ = advice.algo;
    check_cublas(lt_.cublasLtMatmulPreferenceDestroy(preference));
  }
  ~Bare() {
    static_cast<void>(lt_.cublasLtMatrixLayoutDestroy(layout_));
    static_cast<void>(lt_.cublasLtMatmulDescDestroy(description_));
    static_cast<void>(lt_.cublasLtDestroy(handle_));
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  void run(const DeviceArray<Half>& a, const DeviceArray<Half>& b, DeviceArray<Half>& c) const {
    const float alpha = 1, beta = 0;
    check_cublas(lt_.cublasLtMatmul(handle_, description_, &alpha, b.data(), layout_, a.data(),
                                    layout_, &beta, c.data(), layout_, c.data(), layout_,
                                    &algorithm_, workspace_.data(), workspace_.size(),
                                    stream_.inside().stream));
  }

 private:
  const CublasLt& lt_ = cublas_lt();
  const Stream& stream_;
  DeviceArray<std::byte> workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t layout_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

/// Both in turn, so that a change of the clock meets both.
void dispatch(const Stream& stream) {
  std::printf("fp16 products n x n x n by cublasLt, bare and through our dispatch, microseconds\n");
  std::printf("%6s %10s %10s %8s %10s %10s %8s %9s\n", "n", "GPU bare", "GPU ours", "ratio",
              "host bare", "host ours", "ratio", "TFLOP/s");
  for (const std::int64_t n : {64, 256, 512, 1024, 2048, 4096, 8192}) {
    const auto a = random_array<Half>(stream, n * n), b = random_array<Half>(stream, n * n);
    DeviceArray<Half> c(static_cast<std::size_t>(n * n));
    const Bare bare(stream, n);
    const Gemm shape{.m = n, .n = n, .k = n, .transpose_b = true};
    const auto by_bare = [&] { bare.run(a, b, c); };
    const auto by_ours = [&] { gemm<Half>(stream, shape, a, b, c); };
    by_bare();
    by_ours();
    const int times = n < 4096 ? 100 : 10;
    std::vector<double> gpu_bare, gpu_ours, host_bare, host_ours;
    for (int round = 0; round < 5; ++round) {
      gpu_bare.push_back(gpu_time(stream, times, by_bare));
      gpu_ours.push_back(gpu_time(stream, times, by_ours));
      if (n > 1024) continue;  // the queue fills up, and the host waits for the GPU
      host_bare.push_back(host_time(stream, by_bare));
      host_ours.push_back(host_time(stream, by_ours));
    }
    const double gb = median(gpu_bare), go = median(gpu_ours);
    const double rate = 2e-12 * static_cast<double>(n * n) * static_cast<double>(n) / go;
    if (n > 1024) {
      std::printf("%6ld %10.2f %10.2f %8.3f %10s %10s %8s %9.1f\n", static_cast<long>(n), gb * 1e6,
                  go * 1e6, go / gb, "-", "-", "-", rate);
    } else {
      const double hb = median(host_bare), ho = median(host_ours);
      std::printf("%6ld %10.2f %10.2f %8.3f %10.3f %10.3f %8.3f %9.1f\n", static_cast<long>(n),
                  gb * 1e6, go * 1e6, go / gb, hb * 1e6, ho * 1e6, ho / hb, rate);
    }
  }
}

/// 16384 tokens of a model 2048 wide; causal counts half. Backward: five products' operations,
/// though ours does seven.
template <typename T>
void attention_rates(const Stream& stream, const char* type) {
  constexpr std::int64_t elements = 16384 * 2048;
  const auto q = random_array<T>(stream, elements);
  const DeviceArray<T> out(static_cast<std::size_t>(elements));
  const DeviceArray<T> dq(out.size()), dk(out.size()), dv(out.size());
  std::printf("\nfused attention, %s, TFLOP/s\n%6s %5s %7s %9s %9s\n", type, "tokens", "size",
              "causal", "forward", "backward");
  for (const std::int64_t size : {64, 128, 256}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t length : {512, 1024, 2048, 4096, 8192, 16384}) {
        const Attention shape{.batch = 16384 / length,
                              .heads = 2048 / size,
                              .kv_heads = 2048 / size,
                              .queries = length,
                              .keys = length,
                              .size = size,
                              .causal = causal};
        const DeviceArray<float> sums(static_cast<std::size_t>(16384 * shape.heads));
        const auto forward = [&] { attention<T>(stream, shape, q, q, q, out, sums); };
        const auto backward = [&] {
          attention_gradient<T>(stream, shape, q, q, q, q, out, sums, dq, dk, dv);
        };
        forward();
        backward();
        const double flops = (causal ? 2.0 : 4.0) * static_cast<double>(elements) *
                             static_cast<double>(length) * 1e-12;
        std::printf("%6ld %5ld %7s %9.1f %9.1f\n", static_cast<long>(length),
                    static_cast<long>(size), causal ? "yes" : "no",
                    flops / gpu_time(stream, 5, forward),
                    2.5 * flops / gpu_time(stream, 3, backward));
      }
    }
  }
}

}  // namespace

int main() {
  try {
    if (devices().empty()) {
      std::printf("no CUDA device (%s): nothing to time\n", why_no_devices().c_str());
      return 0;
    }
    const Stream stream;
    const Device& device = stream.device();
    std::printf("%s, compute capability %d.%d, CUDA %s, driver for %s\n\n", device.name.c_str(),
                device.major, device.minor, runtime_version().c_str(), driver_version().c_str());
    dispatch(stream);
    attention_rates<Half>(stream, "fp16");
    if (device.at_least(8)) attention_rates<BFloat16>(stream, "bf16");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}

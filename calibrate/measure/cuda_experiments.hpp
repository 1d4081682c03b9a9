// What is measured of a GPU: the kernels of kernels/ in each type that it has.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/measure/cpu_experiments.hpp"
#include "calibrate/measure/experiment.hpp"
#include "calibrate/measure/stopwatch.hpp"
#include "kernels/device.hpp"

namespace stratagem::calibrate {

struct CudaExperiment {
  Experiment what;               ///< without `prepare`
  std::string type;              ///< "fp16"
  std::function<void()> launch;  ///< asks for the kernel once, on the operands whose turn it is
};

/// One type's experiments, and the memory that their operands are dealt from.
struct CudaExperiments {
  /// A product of 8192 x 8192 x 8192, and a sum of large operands: the rates that shares are taken
  /// of where no datasheet tells them.
  CudaExperiment peak, bandwidth;
  /// Matrix products of transformer layers, forward and backward, with numbers of tokens at and
  /// beside the edges of tiles, products that just fill the multiprocessors and that do not, and
  /// those of attention heads; and every kind of kernel that moves memory.
  std::vector<CudaExperiment> all;
  /// Fused attention, forward and backward; columns batch, heads, queries, keys, size, causal (1 or
  /// 2: yes). Flops are those of the two products, or of the five of a backward pass; causal ones
  /// count half.
  std::vector<CudaExperiment> attention;
};

/// `type` is "fp16", "bf16" (of GPUs that have it) or "fp32" (without tf32). Operands are random
/// and dealt in turn out of more than twice the L2 cache. The stream must live as long as these.
CudaExperiments cuda_experiments(const kernels::Stream& stream, const std::string& type,
                                 Sweep sweep);

/// How long the GPU takes, by events around several launches. Before them it fills memory, which
/// leaves nothing of theirs in the cache and lets the host ask for all of them ahead, so that its
/// own time is not counted: where the host took longer than that, the GPU fills more and the sample
/// is taken again. Nullopt where the host is never ahead.
class CudaStopwatch {
 public:
  explicit CudaStopwatch(const kernels::Stream& stream);
  [[nodiscard]] std::optional<Timed> time_of(const std::function<void()>& launch,
                                             const Effort& effort) const;

 private:
  [[nodiscard]] GpuSample once(const std::function<void()>& launch, int launches, int fills) const;
  const kernels::Stream& stream_;
  kernels::DeviceArray<std::byte> filled_;
};

}  // namespace stratagem::calibrate

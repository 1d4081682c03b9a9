// From what simulated ranks run to what is timed.
#include "calibrate/measure/scenario_experiments.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calibrate/measurements.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::Rows;
constexpr std::int64_t width = 1024;

/// Rows of `width` columns, or one row that is shorter.
Rows rows_of(double elements) {
  if (elements < static_cast<double>(width))
    return {.rows = 1, .columns = std::max<std::int64_t>(1, std::llround(elements))};
  return {.rows = std::llround(elements / static_cast<double>(width)), .columns = width};
}

class Collected {
 public:
  explicit Collected(std::string scenario) : scenario_(std::move(scenario)) {}

  void add(Experiment experiment) {
    if (!names_.insert(experiment.name()).second) return;
    experiment.scenario = scenario_;
    all_.push_back(std::move(experiment));
  }
  std::vector<Experiment> take() { return std::move(all_); }

 private:
  std::string scenario_;
  std::set<std::string> names_;
  std::vector<Experiment> all_;
};

void add_product(const cost::Kernel& kernel, const SharedPool& pool, Collected& collected) {
  if (std::min({kernel.m, kernel.n, kernel.k, kernel.batch}) < 1) return;
  for (const char* transposes : {"NT", "NN", "TN"})
    collected.add(product({kernel.m, kernel.n, kernel.k, kernel.batch, transposes}, pool));
}

/// Bytes by operation, less those that are within a tenth of smaller ones.
using Sizes = std::map<const MemoryKernel*, std::set<double>>;

void note_size(const cost::Kernel& kernel, Sizes& sizes) {
  const std::string kind = cost::to_text(kernel.kind);
  const double bytes = kernel.traffic.value / std::max(1, kernel.launches);
  for (const MemoryKernel& stream : memory_kernels()) {
    const bool other_pass =
        kernel.pass != cost::KernelPass::either && kernel.pass != pass_of(stream.operation);
    if (stream.kind == kind && !other_pass && bytes >= stream.operands * element_bytes)
      sizes[&stream].insert(bytes);
  }
}

void add_streams(const Sizes& sizes, const SharedPool& pool, Collected& collected) {
  for (const MemoryKernel& stream : memory_kernels()) {
    const auto of_stream = sizes.find(&stream);
    if (of_stream == sizes.end()) continue;
    double last = 0;
    for (const double bytes : of_stream->second) {
      if (bytes < 1.1 * last) continue;
      last = bytes;
      collected.add(streaming(stream, rows_of(bytes / stream.operands / element_bytes), pool));
    }
  }
}

}  // namespace

std::vector<Experiment> scenario_experiments(const ScenarioKernels& scenario,
                                             const SharedPool& pool) {
  Collected collected(scenario.name);
  Sizes sizes;
  for (const cost::Kernel& kernel : scenario.kernels) {
    if (kernel.kind == cost::KernelKind::gemm)
      add_product(kernel, pool, collected);
    else if (!cost::is_attention(kernel.kind) && !cost::concerns_host(kernel.kind))
      note_size(kernel, sizes);
  }
  add_streams(sizes, pool, collected);
  return collected.take();
}

}  // namespace stratagem::calibrate

// Colour refinement: which of 512 devices cannot differ.
#include <benchmark/benchmark.h>

#include "bench/workload.hpp"
#include "sim/folding/folding.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace {

using namespace stratagem;

void fold(benchmark::State& state, const strategies::Options& options) {
  const cost::Profile profile = bench::v100();
  const model::Graph graph = bench::gpt_24_layers(options.data);
  const program::Program program =
      lowering::lower(bench::plan(graph, 8, options), bench::megatron());
  const topology::Cluster cluster = bench::dgx_2h(devices_of(options) / 16);
  std::size_t actors = 0;
  for (auto _ : state) {
    actors = sim::fold(program, cluster, profile.collective, true).actors.size();
  }
  state.counters["actors"] = static_cast<double>(actors);
}
BENCHMARK_CAPTURE(fold, tensor_8_data_64, {.tensor = 8, .data = 64})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fold, tensor_8_pipeline_8_data_8, {.tensor = 8, .pipeline = 8, .data = 8})
    ->Unit(benchmark::kMillisecond);

}  // namespace

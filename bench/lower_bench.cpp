// Lowering: from a plan to a program. Costs O(distinct blocks) + O(cells), whatever the number of
// devices.
#include <benchmark/benchmark.h>

#include "bench/workload.hpp"

namespace {

using namespace stratagem;

void lower(benchmark::State& state) {
  const auto data = static_cast<int>(state.range(0));
  const cost::Stack stack = bench::megatron();
  const model::Graph graph = bench::gpt_24_layers(data);
  const strategies::Plan plan =
      bench::plan(graph, 8, {.tensor = 8, .data = data, .recompute = "full"});
  for (auto _ : state) benchmark::DoNotOptimize(strategies::lower(plan, stack));
}
BENCHMARK(lower)->ArgName("data")->Arg(1)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace

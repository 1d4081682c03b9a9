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
      bench::plan(graph, 8, {.tensor = 8, .data = data, .recompute = {"full"}});
  for (auto _ : state) benchmark::DoNotOptimize(lowering::lower(plan, stack));
}
/// GPT-3 175B over 8 tensor x 8 pipeline ranks with two chunks each, times `data` replicas.
void lower_gpt3(benchmark::State& state) {
  const auto data = static_cast<int>(state.range(0));
  const cost::Stack stack = bench::megatron();
  const model::Graph graph = model::gpt({.layers = 96,
                                         .hidden = 12288,
                                         .heads = 96,
                                         .sequence = 2048,
                                         .vocabulary = 51200,
                                         .batch = data});
  const strategies::Plan plan = bench::plan(graph, 64,
                                            {.tensor = 8,
                                             .pipeline = 8,
                                             .data = data,
                                             .schedule = "interleaved",
                                             .stages = {.chunks = 2},
                                             .recompute = {"full"}});
  for (auto _ : state) benchmark::DoNotOptimize(lowering::lower(plan, stack));
}
BENCHMARK(lower_gpt3)->ArgName("data")->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

BENCHMARK(lower)->ArgName("data")->Arg(1)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace

// The flagship scenario from its file to its metrics, on one core. Target: below one second.
#include <benchmark/benchmark.h>

#include "search/scenario.hpp"

namespace {

using namespace stratagem;

constexpr const char* flagship = "scenarios/megatron_gpt2_dgx2h.json";

void read_scenario(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(search::read_scenario(flagship));
}
BENCHMARK(read_scenario)->Unit(benchmark::kMillisecond);

void simulate_scenario(benchmark::State& state) {
  for (auto _ : state) {
    const search::Scenario scenario = search::read_scenario(flagship);
    for (const search::Run& run : scenario.runs) {
      benchmark::DoNotOptimize(search::simulate(run, {}));
    }
  }
}
BENCHMARK(simulate_scenario)->Unit(benchmark::kMillisecond);

}  // namespace

// The flagship scenario from its file to its metrics, on one core. Target: below one second.
#include <benchmark/benchmark.h>

#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace {

using namespace stratagem;

constexpr const char* flagship = "scenarios/megatron_gpt2_dgx2h.json";

void read_scenario(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(study::read_scenario(flagship));
}
BENCHMARK(read_scenario)->Unit(benchmark::kMillisecond);

void simulate_scenario(benchmark::State& state) {
  for (auto _ : state) {
    const study::Scenario scenario = study::read_scenario(flagship);
    for (const study::Run& run : scenario.runs) {
      benchmark::DoNotOptimize(study::simulate(run, {}));
    }
  }
}
BENCHMARK(simulate_scenario)->Unit(benchmark::kMillisecond);

}  // namespace

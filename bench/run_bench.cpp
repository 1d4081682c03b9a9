// The event engine: tasks per second on one core. Target: at least 2 million, on 100,000 tasks or
// more.
#include <benchmark/benchmark.h>

#include "bench/workload.hpp"
#include "sim/engine.hpp"
#include "sim/metrics.hpp"

namespace {

using namespace stratagem;

/// A program with everything that playing it needs.
struct Prepared {
  program::Program program;
  sim::Folding folding;
  sim::Prices prices;
  std::int64_t tasks = 0;  ///< of one iteration on all actors
};

Prepared prepare(int nodes, int micro_batches, const strategies::Options& options, bool folded) {
  const cost::Profile profile = bench::v100();
  const cost::Stack stack = bench::megatron();
  const model::Graph graph = bench::gpt_24_layers(options.data);
  Prepared result;
  result.program = lowering::lower(bench::plan(graph, micro_batches, options), stack);
  result.folding = sim::fold(result.program, bench::dgx_2h(nodes), profile.collective, folded);
  result.prices = sim::price(result.program, profile, stack);
  for (const sim::Actor& actor : result.folding.actors) {
    result.tasks += static_cast<std::int64_t>(
        program::task_count(result.program, result.program.sequences[actor.sequence]));
  }
  return result;
}

void run(benchmark::State& state, const Prepared& prepared) {
  constexpr int iterations = 3;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        sim::run(prepared.program, prepared.folding, prepared.prices, iterations));
  }
  state.SetItemsProcessed(state.iterations() * iterations * prepared.tasks);
  state.counters["tasks"] = static_cast<double>(iterations * prepared.tasks);
  state.counters["actors"] = static_cast<double>(prepared.folding.actors.size());
}

/// One actor: computation with two all-reduces per layer and pass.
void run_tensor_parallel(benchmark::State& state) {
  run(state, prepare(1, 64, {.tensor = 8, .recompute = {"full"}}, true));
}
BENCHMARK(run_tensor_parallel)->Unit(benchmark::kMillisecond);

/// Eight actors that send to each other.
void run_pipeline(benchmark::State& state) {
  run(state, prepare(4, 64, {.tensor = 4, .pipeline = 8, .data = 2, .recompute = {"full"}}, true));
}
BENCHMARK(run_pipeline)->Unit(benchmark::kMillisecond);

/// Sixty-four actors: nothing is folded.
void run_unfolded(benchmark::State& state) {
  run(state, prepare(4, 8, {.tensor = 4, .pipeline = 8, .data = 2, .recompute = {"full"}}, false));
}
BENCHMARK(run_unfolded)->Unit(benchmark::kMillisecond);

/// The pipeline again where communication slows kernels down: they are events.
void run_slowed_pipeline(benchmark::State& state) {
  Prepared prepared =
      prepare(4, 64, {.tensor = 4, .pipeline = 8, .data = 2, .recompute = {"full"}}, true);
  prepared.folding.compute_slowdown = 0.15;
  run(state, prepared);
}
BENCHMARK(run_slowed_pipeline)->Unit(benchmark::kMillisecond);

/// And where nothing runs beside communication: none is.
void run_slowed_tensor_parallel(benchmark::State& state) {
  Prepared prepared = prepare(1, 64, {.tensor = 8, .recompute = {"full"}}, true);
  prepared.folding.compute_slowdown = 0.15;
  run(state, prepared);
}
BENCHMARK(run_slowed_tensor_parallel)->Unit(benchmark::kMillisecond);

void measure(benchmark::State& state) {
  const Prepared prepared =
      prepare(4, 64, {.tensor = 4, .pipeline = 8, .data = 2, .recompute = {"full"}}, true);
  const sim::Timeline timeline = sim::run(prepared.program, prepared.folding, prepared.prices, 3);
  for (auto _ : state) benchmark::DoNotOptimize(sim::metrics(prepared.program, timeline));
  state.SetItemsProcessed(state.iterations() * 3 * prepared.tasks);
}
BENCHMARK(measure)->Unit(benchmark::kMillisecond);

}  // namespace

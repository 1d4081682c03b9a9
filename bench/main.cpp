// Runs the benchmarks; in the root of the repository, where the profiles are.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();

// Max-min sharing: rates of random classes of flows over random links.
#include <benchmark/benchmark.h>

#include <random>

#include "sim/network.hpp"

namespace {

using namespace stratagem;

/// `range` classes over as many links, every class on four of them.
void fair_share(benchmark::State& state) {
  const auto size = static_cast<int>(state.range(0));
  std::mt19937 random(1);
  std::uniform_int_distribution<int> any_link(0, size - 1);
  std::uniform_real_distribution<double> any_rate(1e9, 1e11);
  std::vector<BytesPerSecond> capacities(size);
  std::vector<BytesPerSecond> weights(size);
  std::vector<std::vector<sim::LinkUse>> uses(size);
  for (int i = 0; i < size; ++i) {
    capacities[i] = {any_rate(random)};
    weights[i] = {any_rate(random)};
    uses[i].push_back({i, 0.5, 1});
    for (int part = 0; part < 3; ++part) uses[any_link(random)].push_back({i, 0.5, 1});
  }
  sim::FairShare shares(capacities, uses, weights);
  for (int link = 0; link < size; ++link) {
    for (std::size_t use = 0; use < uses[link].size(); ++use)
      shares.add(link, static_cast<int>(use), 1);
  }
  for ([[maybe_unused]] auto _ : state) {
    shares.add(0, 0, 1);  // something has changed
    benchmark::DoNotOptimize(shares.rates());
    shares.add(0, 0, -1);
    benchmark::DoNotOptimize(shares.rates());
  }
}
BENCHMARK(fair_share)->ArgName("classes")->Arg(4)->Arg(32)->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace

// Flows that come and go on a large network: the cost of sharing its links anew.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "sim/active_flows.hpp"
#include "topology/fabric.hpp"
#include "topology/presets.hpp"

namespace {

using namespace stratagem;

/// 128 servers of 8 A100s on a rail-optimised fat tree.
topology::Cluster fat_tree_of_1024() {
  const auto& presets = topology::presets();
  const auto preset = std::ranges::find(presets, "dgx-a100", &topology::Preset::name);
  return {preset->build(1).design(), 128,
          topology::FabricDesign{.kind = topology::FabricKind::fat_tree,
                                 .speed = topology::network_speed("HDR"),
                                 .rails = 8}};
}

/// A send between two GPUs, drawn anew for every flow, each of a group of its own.
program::Program random_sends(int gpus, int flows) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> any(0, gpus - 1);
  program::Program program;
  program.devices.assign(gpus, {.sequence = 0, .groups = std::vector<int>(flows, -1)});
  program.sequences.resize(1);
  program.blocks.resize(1);
  for (int flow = 0; flow < flows; ++flow) {
    const int from = any(random);
    const int to = (from + 1 + any(random) % (gpus - 1)) % gpus;
    program.communicators.push_back({{from, to}});
    program.devices[from].groups[flow] = program.devices[to].groups[flow] = flow;
    program::Task task{};
    task.work =
        program::Collective{.kind = cost::CollectiveKind::send, .group = flow, .payload = 1_GB};
    program.blocks[0].tasks.push_back(task);
  }
  program.sequences[0].calls = {{.block = 0, .cell = {}, .waits = {}}};
  return program;
}

/// As many flows all the time: one ends, and another begins.
void re_solve(benchmark::State& state) {
  const auto count = static_cast<int>(state.range(0));
  const topology::Cluster cluster = fat_tree_of_1024();
  cost::CollectiveConstants constants;
  constants.nvlink_efficiency.value = constants.network_efficiency.value = 1;
  constants.pcie_efficiency.value = 1;
  const sim::Folding folding =
      sim::fold(random_sends(cluster.gpus(), 2 * count), cluster, constants, false);
  sim::ActiveFlows flows(folding);
  std::mt19937 random(2);
  std::uniform_real_distribution<double> any_size(1e8, 1e10);
  const auto begin = [&](int flow) { flows.begin(flow, flow, Bytes{any_size(random)}); };
  for (int flow = 0; flow < count; ++flow) begin(flow);
  sim::Instant now{0};
  flows.share(now);
  int next = count;
  for ([[maybe_unused]] auto _ : state) {
    now = flows.next_end();
    for (const int ended : flows.end_at(now)) {
      benchmark::DoNotOptimize(ended);
      begin(next++ % static_cast<int>(folding.flows.size()));
    }
    flows.share(now);
  }
  state.counters["links"] = static_cast<double>(folding.capacities.size());
}
BENCHMARK(re_solve)->ArgName("flows")->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace

// How long a tensor takes from one stage to the next: all of it over the network, or a share, and a
// gather within the server.
#include <string>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim {
namespace {

constexpr Bytes activation = 12.0 * 20 * 48 * 2_B;  // b*s*h of lowering::small_gpt in fp16
constexpr BytesPerSecond within = 8_GBps, across = 1_GBps;

/// Servers whose GPUs have a link each to a switch, and an adapter each of their own.
topology::Cluster servers(int nodes, int gpus) {
  topology::NodeDesign design{.name = "server", .gpu = "test", .vertices = {}, .links = {}};
  const auto hub = design.add(topology::VertexKind::nv_switch, "hub");
  for (int i = 0; i < gpus; ++i) {
    const std::string number = std::to_string(i);
    const auto gpu = design.add(topology::VertexKind::gpu, "gpu" + number);
    const auto root = design.add(topology::VertexKind::pcie_switch, "pcie" + number);
    const auto nic = design.add(topology::VertexKind::nic, "nic" + number);
    design.join(gpu, hub, topology::LinkKind::nvlink, 1, within, 0_s);
    design.join(gpu, root, topology::LinkKind::pcie, 1, {1e30}, 0_s);
    design.join(root, nic, topology::LinkKind::pcie, 1, {1e30}, 0_s);
  }
  return {design, nodes, across, 0_s};
}

/// Of the first iteration, where kernels take no time.
Seconds makespan(const std::string& strategy, int micro_batches, int tensor, int stages,
                 bool shares) {
  const model::Graph graph = model::gpt(lowering::small_gpt);
  cost::Stack stack;
  if (shares) stack.rules = {cost::StageShares::activations, cost::StageShares::gradients};
  const program::Program program = UnitPipeline::lowered(strategy, graph, micro_batches, stack);
  const Folding folding = fold(program, servers(stages, tensor), ideal_network(), false);
  const Prices prices = price(program, [](const program::Task&) { return Price{}; });
  const Timeline timeline = run(program, folding, prices, 1);
  return Seconds{static_cast<double>(timeline.iteration_ends.front().picoseconds) * 1e-12};
}

}  // namespace

TEST_CASE("a transfer takes a t-th of the network's time and a gather within the server") {
  // One micro-batch, forth and back over every border: V / across becomes V / t / across and, since
  // each link of a gather carries (t-1)/t of the whole, (t-1)/t V / within.
  for (const int t : {2, 4, 8}) {
    for (const int p : {2, 4}) {
      INFO("tensor " << t << ", stages " << p);
      const std::string strategy = R"({"schedule": "1f1b", "tensor": )" + std::to_string(t) +
                                   R"(, "pipeline": )" + std::to_string(p) + "}";
      const int transfers = 2 * (p - 1);
      const double parts = t;
      const Seconds saved = activation / across - (activation / parts / across +
                                                   (parts - 1) / parts * activation / within);
      const Seconds whole = makespan(strategy, 1, t, p, false);
      const Seconds shared = makespan(strategy, 1, t, p, true);
      CHECK(close(whole - shared, transfers * saved, 1e-6));
    }
  }
}

}  // namespace stratagem::sim

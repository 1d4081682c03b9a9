// The channel search against graphs that NCCL 2.28.9's own search finds on the same servers.
#include <map>
#include <set>

#include "cost/collectives.hpp"
#include "cost/nccl/channel_search.hpp"
#include "tests/catch.hpp"
#include "tests/cost/nccl/nccl_machines.hpp"

using namespace stratagem;
using namespace stratagem::cost;
using namespace stratagem::cost::nccl;

namespace {

Graphs graphs_of_first(const topology::Cluster& cluster, int gpus) {
  const Server server = server_of(cluster, first_gpus(gpus));
  return find_graphs(server, paths_of(server, true), cluster.nodes() > 1);
}

std::string to_text(Pattern pattern) {
  constexpr std::array names = {"ring", "balanced_tree", "tree", "nvls"};
  return names.at(static_cast<std::size_t>(pattern));
}

void check_graph(const Graph& found, const JsonReader& solved) {
  INFO(solved.at("pattern").text());
  CHECK(found.count() == static_cast<int>(solved.at("channels").number()));
  CHECK(close(found.intra / 1_GBps, solved.at("intra GB/s").number(), 1e-9));
  CHECK(close(found.inter / 1_GBps, solved.at("inter GB/s").number(), 1e-9));
  if (found.count() > 0) CHECK(to_text(found.pattern) == solved.at("pattern").text());
}

}  // namespace

TEST_CASE("channels and their speeds are those that NCCL finds on 34 machines and parts of them") {
  const std::vector<SolvedMachine> machines = solved_machines();
  CHECK(machines.size() == 34);
  for (const SolvedMachine& machine : machines) {
    INFO(machine.text());
    const Graphs found = graphs_of_first(machine.cluster(), machine.gpus);
    check_graph(found.ring, machine.solved.at("ring"));
    check_graph(found.tree, machine.solved.at("tree"));
    check_graph(found.nvls, machine.solved.at("nvls"));
  }
}

TEST_CASE("rings on the first 2 to 8 GPUs of a DGX-1V: 1, 2, 4, 2, 2, 4 and 6 of 20 GB/s") {
  // Five GPUs have no cycle of NVLinks: GPU 4 hangs on GPU 0 alone, by two cables. Both rings go
  // through GPU 0 twice, once relaying.
  const topology::Cluster cluster = preset_named("dgx-1v", 1);
  const std::map<int, int> rings{{2, 1}, {3, 2}, {4, 4}, {5, 2}, {6, 2}, {7, 4}, {8, 6}};
  for (const auto& [gpus, count] : rings) {
    INFO(gpus << " GPUs");
    const Graph ring = graphs_of_first(cluster, gpus).ring;
    CHECK(ring.count() == count);
    CHECK(ring.intra == 20_GBps);
    CHECK(ring.type_intra == (gpus == 5 ? PathType::nvlink_relay : PathType::nvlink));
  }
}

TEST_CASE("groups whose GPUs share adapters begin at different ones") {
  // Two GPUs of a DGX A100 have two adapters equally near: with tensor parallelism over four GPUs
  // the data-parallel groups {0, 4} and {1, 5} of every server meet there.
  const topology::Cluster cluster = preset_named("dgx-a100", 2);
  std::set<int> taken;
  for (const int first : {0, 1, 2, 3}) {
    const Server server = server_of(cluster, {first, first + 4});
    for (const bool proxies : {false, true}) {
      const Graph ring = find_graphs(server, paths_of(server, proxies), true).ring;
      REQUIRE(ring.count() == 2);
      CHECK(ring.inter == 24_GBps);
      // Without proxies a ring leaves at the other GPU's adapter.
      for (const Channel& channel : ring.channels)
        CHECK((channel.nic_out == channel.nic_in) == proxies);
      if (!proxies) continue;
      for (const Channel& channel : ring.channels) CHECK(taken.insert(channel.nic_in).second);
    }
  }
  CHECK(taken.size() == 8);
}

TEST_CASE("one GPU on each of several servers has one channel, through the adapter near it") {
  const topology::Cluster cluster = preset_named("dgx-2", 2);
  for (const int gpu : {0, 1, 15}) {
    const Server server = server_of(cluster, {gpu});
    const Graph ring = find_graphs(server, paths_of(server, true), true).ring;
    REQUIRE(ring.count() == 1);
    CHECK(ring.inter == 12_GBps);
    CHECK(ring.channels[0].nic_in == gpu / 2);
  }
}

TEST_CASE("where links are slower than every speed that is tried there is one slow channel") {
  topology::NodeDesign design{.name = "slow", .gpu = "test", .vertices = {}, .links = {}};
  const auto hub = design.add(topology::VertexKind::pcie_switch, "hub");
  const auto nic = design.add(topology::VertexKind::nic, "nic");
  design.join(nic, hub, topology::LinkKind::pcie, 1, 0.1_GBps, 1_us);
  for (int i = 0; i < 3; ++i) {
    const auto gpu = design.add(topology::VertexKind::gpu, "gpu" + std::to_string(i));
    design.join(gpu, hub, topology::LinkKind::pcie, 1, 0.1_GBps, 1_us);
  }
  for (const int nodes : {1, 2}) {
    const topology::Cluster cluster(design, nodes, 1_GBps, 1_us);
    const Graphs graphs = graphs_of_first(cluster, 3);
    for (const Graph* graph : {&graphs.ring, &graphs.tree}) {
      REQUIRE(graph->count() == 1);
      CHECK(graph->channels[0].gpus == std::vector{0, 1, 2});
      CHECK(graph->intra == 0.1_GBps);
      CHECK(graph->same_order);  // one channel has one order
    }
    Collectives collectives(cluster, {}, "2.28.9");
    CHECK(collectives.route(CollectiveKind::all_reduce, first_gpus(3 * nodes), 1_MB).limit >
          BytesPerSecond{});
  }
}

TEST_CASE("four channels of 40 GB/s on eight links of an H100 become eight of 20 GB/s") {
  // Eight links of 20.6 GB/s carry 2 channels of 60, 3 of 50 or 4 of 40 GB/s: the last carry most.
  // Of fast channels NCCL makes twice as many of half the speed; on GPUs after 8.0, where they are
  // slower than 50 GB/s, it does so for four channels at most (search.cc, 2.28.9).
  topology::NodeDesign design{.name = "eight links", .gpu = "test", .vertices = {}, .links = {}};
  design.compute_capability = 90;
  const auto hub = design.add(topology::VertexKind::nv_switch, "hub");
  for (int i = 0; i < 4; ++i) {
    const auto gpu = design.add(topology::VertexKind::gpu, "gpu" + std::to_string(i));
    design.join(gpu, hub, topology::LinkKind::nvlink, 8, 25_GBps, 1_us);
  }
  const Graph ring = graphs_of_first(topology::Cluster(design, 1, 1_GBps, 1_us), 4).ring;
  CHECK(ring.count() == 8);
  CHECK(ring.intra == 20_GBps);
}

// Folding: which devices are one actor, and that nobody can tell a folded run from an unfolded one.
#include "sim/folding/folding.hpp"

#include <map>
#include <set>
#include <tuple>

#include "sim/engine.hpp"
#include "sim/metrics.hpp"
#include "sim/steady.hpp"
#include "strategies/parallel/rank_order.hpp"
#include "tests/catch.hpp"
#include "tests/sim/hand_built.hpp"
#include "tests/sim/lowered.hpp"

namespace stratagem::sim {

namespace {

using strategies::Options;

cost::Profile v100() { return cost::read_profile("scenarios/profiles/v100-sxm3-450w.json"); }

int devices_of(const Folding& folding) {
  int sum = 0;
  for (const Actor& actor : folding.actors) sum += actor.multiplicity;
  return sum;
}

/// Multiplicities of the actors, largest first.
std::vector<int> multiplicities(const Folding& folding) {
  std::vector<int> result;
  for (const Actor& actor : folding.actors) result.push_back(actor.multiplicity);
  std::ranges::sort(result, std::greater<>());
  return result;
}

/// `programs` ranks of one sequence that all sum with the ranks of their row.
program::Program rows(const std::vector<std::vector<int>>& communicators, int devices) {
  HandBuilt built;
  built.add_sequence({kernel(1'000'000), collective(1_MB, {0}), kernel(1'000'000, 0, {1})});
  built.program.devices.assign(devices, {.sequence = 0, .groups = {-1}});
  for (std::size_t c = 0; c < communicators.size(); ++c) {
    built.program.communicators.push_back({communicators[c]});
    for (const int rank : communicators[c])
      built.program.devices[rank].groups = {static_cast<int>(c)};
  }
  return built.program;
}

/// Sizes of the classes of devices, largest first, by colour refinement in its plainest form:
/// colours are texts that spell out the neighbourhood, refined as often as there are vertices.
std::vector<int> naive_classes(const program::Program& program, const topology::Cluster& machine,
                               const cost::CollectiveConstants& constants) {
  using Edges = std::vector<std::pair<std::size_t, std::string>>;  // other vertex, label
  std::vector<std::string> colours;
  std::vector<Edges> edges;
  const auto vertex = [&](const std::string& colour) {
    colours.push_back(colour);
    edges.emplace_back();
    return colours.size() - 1;
  };
  const auto join = [&](std::size_t a, std::size_t b, const std::string& label) {
    edges[a].emplace_back(b, label);
    edges[b].emplace_back(a, label);
  };
  for (const program::Device& device : program.devices) {
    vertex("device " + std::to_string(device.sequence));
  }
  std::map<topology::Direction, std::size_t> links;
  for (std::size_t c = 0; c < program.communicators.size(); ++c) {
    const std::vector<int>& ranks = program.communicators[c].ranks;
    const cost::Route route =
        cost::ring_route(CollectiveKind::all_reduce, machine, ranks, constants);
    const std::size_t flow = vertex("flow " + std::to_string(to_ticks(route.latency).count));
    for (const int rank : ranks) join(flow, rank, "member");
    for (const cost::LinkLoad& load : route.loads) {
      const topology::Link& link = machine.links()[load.direction.link];
      if (!links.contains(load.direction)) {
        const double bandwidth = cost::usable_bandwidth(link, constants).value;
        links[load.direction] = vertex("link " + std::to_string(bandwidth));
      }
      join(flow, links[load.direction], std::to_string(std::llround(load.load * 1e9)));
    }
  }
  for (std::size_t round = 0; round < colours.size(); ++round) {
    std::map<std::string, std::string> shorter;
    std::vector<std::string> next;
    for (std::size_t v = 0; v < colours.size(); ++v) {
      std::multiset<std::string> around;
      for (const auto& [other, label] : edges[v]) around.insert(label + " to " + colours[other]);
      std::string text = colours[v];
      for (const std::string& neighbour : around) text += ", " + neighbour;
      next.push_back(shorter.emplace(text, "c" + std::to_string(shorter.size())).first->second);
    }
    const bool stable = std::set(next.begin(), next.end()).size() ==
                        std::set(colours.begin(), colours.end()).size();
    colours = std::move(next);
    if (stable) break;
  }
  std::map<std::string, int> sizes;
  for (std::size_t d = 0; d < program.devices.size(); ++d) ++sizes[colours[d]];
  std::vector<int> result;
  for (const auto& [colour, size] : sizes) result.push_back(size);
  std::ranges::sort(result, std::greater<>());
  return result;
}

struct FoldedPlan {
  const char* preset;
  int nodes;
  Options options;
  int micro_batches = 1;
  int actors = 0;  ///< that symmetry leaves; 0: not derived
};

}  // namespace

TEST_CASE("folded and unfolded runs agree to the picosecond") {
  // On a DGX-2H every GPU has the same links and half an adapter, so all ranks of a data x tensor
  // grid are one class, and each stage of a pipeline is one. The cube mesh of a DGX-1V has links of
  // two widths: no count is derived.
  const std::vector<FoldedPlan> plans = {
      {"dgx-2h", 1, {.data = 16}, 1, 1},
      {"dgx-2h", 4, {.data = 64, .gradients = {.overlap = true, .bucket = 50_KB}}, 2, 1},
      {"dgx-2h", 1, {.tensor = 8}, 1, 1},
      {"dgx-2h",
       2,
       {.tensor = 8, .data = 4, .gradients = {.overlap = true, .bucket = 50_KB}},
       2,
       1},
      {"dgx-2h", 4, {.tensor = 8, .pipeline = 4, .data = 2, .recompute = {"full"}}, 8, 4},
      {"dgx-2h",
       1,
       {.tensor = 8, .pipeline = 2, .recompute = {.what = "full", .together = 2, .divides = true}},
       4,
       2},
      {"dgx-2h",
       1,
       {.tensor = 4, .pipeline = 4, .swap = {.layers = 2, .to = strategies::Keep::Where::peers}},
       6,
       4},
      {"dgx-2h", 1, {.tensor = 2, .pipeline = 4, .data = 2, .schedule = "gpipe"}, 4, 4},
      {"dgx-1v", 1, {.data = 8, .gradients = {.overlap = true}}, 1},
      {"dgx-1v",
       2,
       {.tensor = 4, .data = 4, .recompute = {"full"}, .gradients = {.overlap = true}},
       2},
      {"dgx-1v", 8, {.tensor = 8, .pipeline = 4, .data = 2}, 4},
      {"dgx-a100", 1, {.tensor = 8}, 1, 1},
      {"dgx-a100", 2, {.tensor = 2, .data = 8, .gradients = {.overlap = true, .bucket = 50_KB}}, 2},
      {"dgx-a100", 8, {.tensor = 4, .pipeline = 4, .data = 4, .schedule = "gpipe"}, 4},
  };
  const cost::Profile profile = v100();
  cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  stack.rules = {cost::OperatorKernels{.of = "optimizer_step", .synchronizations = 1}};
  for (const FoldedPlan& plan : plans) {
    INFO(plan.preset << " x " << plan.nodes << " tensor " << plan.options.tensor << " pipeline "
                     << plan.options.pipeline << " data " << plan.options.data);
    const program::Program program = lowered_gpt(4, plan.micro_batches, plan.options, stack);
    const topology::Cluster machine = cluster(plan.preset, plan.nodes);
    const Prices prices = price(program, profile, stack);
    const Folding folded = fold(program, machine, profile.collective, true);
    const Folding unfolded = fold(program, machine, profile.collective, false);
    CHECK(devices_of(folded) == strategies::devices_of(plan.options));
    CHECK(unfolded.actors.size() == program.devices.size());
    CHECK(folded.actors.size() < unfolded.actors.size());
    if (plan.actors > 0) CHECK(folded.actors.size() == static_cast<std::size_t>(plan.actors));
    const Timeline one = run_until_steady(program, folded, prices);
    const Timeline all = run_until_steady(program, unfolded, prices);
    CHECK(one.iteration_ends == all.iteration_ends);
    // Every actor does at every instant what each device does that it stands for.
    std::vector<int> alike(one.actors.size(), 0);
    for (std::size_t device = 0; device < all.actors.size(); ++device) {
      for (std::size_t a = 0; a < one.actors.size(); ++a) {
        const bool same = one.actors[a].sequence == all.actors[device].sequence &&
                          one.times[a].begins == all.times[device].begins &&
                          one.times[a].ends == all.times[device].ends;
        alike[a] += same ? 1 : 0;
        if (one.actors[a].device == static_cast<int>(device)) CHECK(same);
      }
    }
    for (std::size_t a = 0; a < alike.size(); ++a) CHECK(alike[a] >= one.actors[a].multiplicity);
    const Metrics mine = metrics(program, one);
    const Metrics theirs = metrics(program, all);
    CHECK(mine.iteration_time == theirs.iteration_time);
    CHECK(mine.makespan == theirs.makespan);
    CHECK(mine.hardware_flops == theirs.hardware_flops);
    CHECK(mine.peak.total == theirs.peak.total);
    CHECK(mine.peak.by_category == theirs.peak.by_category);
    CHECK(mine.peak.when == theirs.peak.when);
    CHECK(std::abs(mine.bubble_fraction - theirs.bubble_fraction) < 1e-12);
    CHECK(close(mine.exposed_communication, theirs.exposed_communication, 1e-12));
    CHECK(mine.communication.size() == theirs.communication.size());
    for (const auto& [kind, bytes] : mine.communication) {
      CHECK(close(bytes, theirs.communication.at(kind), 1e-12));
    }
  }
}

TEST_CASE("devices without communication are one class per sequence") {
  HandBuilt built;
  built.add_sequence({kernel(1)});
  built.add_sequence({kernel(2)});
  for (int device = 0; device < 16; ++device) built.add_device(device < 10 ? 0 : 1);
  const Folding folded = fold(built.program, cluster("dgx-2h", 1), ideal_network(), true);
  CHECK(multiplicities(folded) == std::vector<int>{10, 6});
}

TEST_CASE("groups that lie differently on the nodes are classes of their own") {
  // Two groups of 8 within a board, two of 4 + 4 GPUs over two nodes. The first never see the
  // network.
  const auto row = [](int from, int count) {
    std::vector<int> ranks(count);
    for (int i = 0; i < count; ++i) ranks[i] = from + i;
    return ranks;
  };
  std::vector<int> across = row(8, 4);
  std::vector<int> other = row(12, 4);
  for (int i = 0; i < 4; ++i) across.push_back(16 + i);
  for (int i = 0; i < 4; ++i) other.push_back(20 + i);
  const auto machine = cluster("dgx-2h", 2);
  const auto program = rows({row(0, 8), across, other, row(24, 8)}, 32);
  CHECK(multiplicities(fold(program, machine, v100().collective, true)) ==
        std::vector<int>{16, 16});
  // All four within boards: one class.
  const auto even = rows({row(0, 8), row(8, 8), row(16, 8), row(24, 8)}, 32);
  CHECK(multiplicities(fold(even, machine, v100().collective, true)) == std::vector<int>{32});
}

TEST_CASE("one group that is different unfolds only what it must") {
  // Three pairs of neighbours and one pair that lies across the boards: its ring crosses the trunk.
  const auto program = rows({{0, 1}, {2, 3}, {4, 5}, {6, 8}}, 16);
  const Folding folded = fold(program, cluster("dgx-2h", 1), v100().collective, true);
  CHECK(multiplicities(folded) == std::vector<int>{8, 6, 2});  // idle GPUs, pairs, the odd pair
}

TEST_CASE("a rank whose partner does something else is a class of its own") {
  // Ranks 0, 1 and 2 do the same, but rank 2 sums with rank 3, which computes longer.
  HandBuilt built;
  for (const int work : {10, 20}) built.add_sequence({kernel(work), collective(1_MB, {0})});
  for (int device = 0; device < 4; ++device) built.add_device(device == 3 ? 1 : 0, {device / 2});
  const Folding folded = fold(built.program, cluster("dgx-2h", 1), ideal_network(), true);
  CHECK(multiplicities(folded) == std::vector<int>{2, 1, 1});
}

TEST_CASE("communicators that share an adapter share its port, folded or not") {
  // GPUs 0 and 1 of a DGX-2H stand next to one adapter, whose PCIe links are faster than its port.
  // Two ranks on two nodes put one byte per byte of payload on their way (2 (n - 1) / n = 1), so
  // both pairs together put two bytes on each port; alone each takes half as long.
  const topology::Cluster machine = cluster("dgx-2h", 2);
  const auto is_port = [](const topology::Link& l) {
    return l.kind == topology::LinkKind::network;
  };
  const BytesPerSecond port = std::ranges::find_if(machine.links(), is_port)->bandwidth;
  const Bytes payload = 1_MB;
  for (const int pairs : {1, 2}) {
    HandBuilt built;
    built.add_sequence({collective(payload)});
    built.add_sequence({});
    for (int device = 0; device < 32; ++device) {
      const int pair = device % 16;
      built.add_device(pair < pairs ? 0 : 1, {pair < pairs ? pair : -1});
    }
    for (const bool folded : {true, false}) {
      const Folding folding = fold(built.program, machine, ideal_network(), folded);
      const Timeline timeline = run(built.program, folding, built.prices, 1);
      CHECK(timeline.iteration_ends[0] == Instant{0} + to_ticks(pairs * payload / port));
    }
  }
}

TEST_CASE("two sends of equal loads that take links of other latency are two classes") {
  // Two stages of two replicas: 0 and 1 send to 2 and 3 over cables that differ in latency alone.
  using namespace topology;
  NodeDesign design{.name = "uneven", .gpu = "test", .vertices = {}, .links = {}};
  for (int i = 0; i < 4; ++i) design.add(VertexKind::gpu, "gpu" + std::to_string(i));
  for (const auto& [a, b, latency] :
       {std::tuple{0, 1, 2_us}, std::tuple{2, 3, 2_us}, std::tuple{0, 3, 2_us},
        std::tuple{1, 2, 2_us}, std::tuple{0, 2, 2_us}, std::tuple{1, 3, 500_us}})
    design.join(a, b, LinkKind::nvlink, 1, 25_GBps, latency);
  const Cluster machine(design, 1, 12.5_GBps, 1_us);
  const program::Program program =
      lowered_gpt(4, 4, {.pipeline = 2, .data = 2, .schedule = "1f1b"});
  const cost::Profile profile = v100();
  const Prices prices = price(program, profile, {.slowdown = {1}, .host_factor = {1}});
  const Folding folded = fold(program, machine, profile.collective, true);
  CHECK(multiplicities(folded) == std::vector<int>{1, 1, 1, 1});
  const Timeline one = run_until_steady(program, folded, prices);
  const Timeline all =
      run_until_steady(program, fold(program, machine, profile.collective, false), prices);
  CHECK(one.iteration_ends == all.iteration_ends);
}

TEST_CASE("across leaves a ring takes the switches on its longest hop, folded or not") {
  // Four servers of one GPU, two on a leaf: 2(n-1) hops of two ports, and of two cables between
  // switches.
  using namespace topology;
  NodeDesign design{.name = "lone", .gpu = "test", .vertices = {}, .links = {}};
  design.join(design.add(VertexKind::gpu, "gpu"), design.add(VertexKind::nic, "nic"),
              LinkKind::pcie, 1, 16_GBps, 0_s);
  FabricDesign tree{.kind = FabricKind::fat_tree, .speed = network_speed("EDR")};
  tree.speed.port_latency = 3_us;
  tree.speed.switch_latency = 5_us;
  tree.ports_per_leaf = 2;
  const Cluster machine(design, 4, tree);
  cost::CollectiveConstants constants = ideal_network();
  constants.network_link_latency = std::nullopt;
  const auto ends_of = [&](const program::Program& program, bool folded) {
    const Folding folding = fold(program, machine, constants, folded);
    const Prices free = price(program, [](const program::Task&) { return Price{}; });
    return run(program, folding, free, 1).iteration_ends.at(0);
  };
  HandBuilt ring;
  ring.add_sequence({collective(0_B)});
  for (int device = 0; device < 4; ++device) ring.add_device(0, {0});
  // First each pair on its leaf, then all four.
  HandBuilt pairs;
  pairs.add_sequence({collective(0_B), collective(0_B, {0}, Stream::communication, 1)});
  for (const int other : {0, 0, 1, 1}) pairs.add_device(0, {other, 2});
  for (const bool folded : {true, false}) {
    CHECK(ends_of(ring.program, folded) == Instant{0} + to_ticks(6 * 16_us));
    CHECK(ends_of(pairs.program, folded) == Instant{0} + to_ticks(2 * 6_us + 6 * 16_us));
  }
  // Replicas of a pipeline, one of which stays on its leaf of three servers while the other climbs.
  tree.ports_per_leaf = 3;
  const Cluster uneven(design, 4, tree);
  const program::Program program =
      lowered_gpt(4, 4, {.pipeline = 2, .data = 2, .schedule = "1f1b"});
  const cost::Profile profile = v100();
  const Prices prices = price(program, profile, {.slowdown = {1}, .host_factor = {1}});
  for (const char* version : {"", "2.18.6"}) {
    cost::Collectives collectives(uneven, profile.collective, version);
    const Timeline one = run_until_steady(program, fold(program, collectives, true), prices);
    const Timeline all = run_until_steady(program, fold(program, collectives, false), prices);
    CHECK(one.iteration_ends == all.iteration_ends);
  }
}

TEST_CASE("classes are those of colour refinement in its plainest form") {
  const cost::CollectiveConstants constants = v100().collective;
  const std::vector<std::tuple<const char*, int, std::vector<std::vector<int>>>> cases = {
      {"dgx-1v", 1, {{0, 1, 2, 3, 4, 5, 6, 7}}},
      {"dgx-1v", 1, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
      {"dgx-1v", 1, {{0, 3, 2}, {4, 7}}},
      {"dgx-1v", 2, {{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}},
      {"dgx-1v", 2, {{0, 8}, {1, 9}, {2, 10}, {3, 4}, {11, 12}}},
      {"dgx-2h", 2, {{0, 1, 2, 16}, {3, 4, 5, 17}, {6, 7, 8, 18}}},
      {"dgx-a100", 2, {{0, 1, 8}, {2, 3, 9}, {4, 10, 11}, {5, 6}}},
  };
  for (const auto& [preset, nodes, communicators] : cases) {
    const topology::Cluster machine = cluster(preset, nodes);
    const program::Program program = rows(communicators, machine.gpus());
    INFO(preset << " x " << nodes << ", " << communicators.size() << " groups");
    CHECK(multiplicities(fold(program, machine, constants, true)) ==
          naive_classes(program, machine, constants));
  }
}

TEST_CASE(
    "flows of one class load every link of a class equally often: the partition is equitable") {
  // Read from the unfolded run: links are alike if they have equal capacity and equal uses.
  const auto program = rows({{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}, 16);
  const Folding all = fold(program, cluster("dgx-1v", 2), v100().collective, false);
  using Kind = std::pair<double, std::vector<std::tuple<int, double, std::int64_t>>>;
  const auto kind_of = [&](int link) {
    Kind kind{all.capacities[link].value, {}};
    for (const LinkUse& use : all.link_uses[link]) {
      kind.second.emplace_back(use.flow, use.load, use.count);
    }
    return kind;
  };
  std::map<int, std::map<std::pair<Kind, double>, std::int64_t>> by_class;
  for (const Flow& flow : all.flows) {
    std::map<std::pair<Kind, double>, std::int64_t> counts;
    for (const Flow::Part& part : flow.parts) {
      counts[{kind_of(part.link), all.link_uses[part.link][part.use].load}] += part.count;
    }
    const auto [found, fresh] = by_class.emplace(flow.flow_class, counts);
    CHECK(found->second == counts);
  }
}

}  // namespace stratagem::sim

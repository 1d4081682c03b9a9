// Drives of servers: what presets have, what is read and written beside each other, what users
// write.
#include "topology/drives.hpp"

#include <map>
#include <tuple>

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/topology/flow.hpp"
#include "topology/node_file.hpp"
#include "topology/presets.hpp"

namespace stratagem::topology {
namespace {

NodeDesign preset(const std::string& name) {
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  return found->build(1).design();
}

NodeDesign read(const NodeDesign& design, const std::string& text) {
  return read_drives(JsonReader::from_text(text, "drives.json"), design);
}

std::string complaint(const NodeDesign& design, const std::string& text) {
  try {
    static_cast<void>(read(design, text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// What one message alone can have along shares, each link at its rate in that direction.
BytesPerSecond alone(const Cluster& cluster, const std::vector<Share>& shares) {
  std::map<Direction, double> loads;
  for (const Share& share : shares) loads[share.direction] += share.share;
  double seconds_per_byte = 0;
  for (const auto& [direction, load] : loads) {
    const BytesPerSecond rate = link(cluster, direction).toward(direction.forward);
    seconds_per_byte = std::max(seconds_per_byte, load / rate.value);
  }
  return {1 / seconds_per_byte};
}

/// Two GPUs under a switch each, at a processor each.
NodeDesign two_sockets() {
  NodeDesign design{.name = "two", .gpu = "test", .vertices = {}, .links = {}};
  std::vector<VertexId> cpus;
  std::vector<VertexId> gpus;
  for (int i = 0; i < 2; ++i) {
    const std::string n = std::to_string(i);
    gpus.push_back(design.add(VertexKind::gpu, "gpu" + n));
    const VertexId root = design.add(VertexKind::pcie_switch, "root" + n);
    cpus.push_back(design.add(VertexKind::cpu, "cpu" + n));
    design.join(gpus[i], root, LinkKind::pcie, 1, 16_GBps, 0_s);
    design.join(root, cpus[i], LinkKind::pcie, 1, 16_GBps, 0_s);
  }
  design.join(gpus[0], gpus[1], LinkKind::nvlink, 1, 25_GBps, 0_s);
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 1, 20_GBps, 0_s);
  return design;
}

const std::string four = R"({"count": 4, "capacity": "2 TB", "read": "3 GB/s", "write": "1 GB/s"})";

}  // namespace

// DGX-1: 4 x 1.92 TB; DGX-2: 8 x 3.84 TB, "30 TB"; DGX A100 of 80 GB and DGX H100: 8 x 3.84 TB, "30
// TB".
TEST_CASE("servers have the drives that are known of them, and where nothing is known none") {
  for (const auto& [name, count, terabytes] :
       {std::tuple("dgx-1v", 4, 7.68), std::tuple("dgx-2", 8, 30.72),
        std::tuple("dgx-2h", 8, 30.72), std::tuple("dgx-a100", 8, 30.72),
        std::tuple("dgx-h100", 8, 30.72), std::tuple("dgx-h200", 8, 30.72)}) {
    INFO(name);
    CHECK(drive_count(preset(name)) == count);
    CHECK(close(capacity_of_drives(preset(name)), terabytes * 1_TB, 1e-12));
    CHECK_FALSE(preset(name).drives->source.empty());
    CHECK_FALSE(preset(name).drives->provenance.empty());
  }
  for (const char* name : {"hgx-b200", "hgx-b300", "gb200-nvl72", "gb200-nvl64", "gb300-nvl72",
                           "gb300-nvl64", "pcie-v100", "p3.16xlarge", "cpu-host"}) {
    CHECK_FALSE(preset(name).drives);
    CHECK(capacity_of_drives(preset(name)) == Bytes{});
  }
}

TEST_CASE("what a processor reads comes from all drives in equal parts, and arrives whole") {
  const Cluster cluster(read(two_sockets(), four), 1, 10_GBps, 0_s);
  const std::vector<VertexId> cpus = all_of(cluster, VertexKind::cpu);
  for (const int gpu : {0, 1}) {
    for (const bool reads : {true, false}) {
      const auto shares = reads ? cluster.route_from_drives(gpu) : cluster.route_to_drives(gpu);
      std::map<VertexId, double> net;  // out less in
      for (const Share& share : shares) {
        net[tail(cluster, share.direction)] += share.share;
        net[head(cluster, share.direction)] -= share.share;
      }
      const double sign = reads ? 1 : -1;
      for (const VertexId drive : all_of(cluster, VertexKind::drive))
        CHECK(std::abs(net[drive] - sign / 4) < 1e-12);
      CHECK(std::abs(net[cpus[gpu]] + sign) < 1e-12);
      CHECK(std::abs(net[cpus[1 - gpu]]) < 1e-12);
      // Half of them stand at the other processor.
      CHECK(kinds(cluster, shares) == std::set{LinkKind::drive, LinkKind::inter_socket});
    }
    // Four times 3 GB/s, of which six cross sockets; four times 1 GB/s.
    CHECK(close(alone(cluster, cluster.route_from_drives(gpu)), 12_GBps, 1e-12));
    CHECK(close(alone(cluster, cluster.route_to_drives(gpu)), 4_GBps, 1e-12));
  }
}

TEST_CASE("drives under a switch share its way to the processor") {
  const std::string fast = R"({"count": 4, "capacity": "2 TB", "read": "10 GB/s", "write": "1 GB/s",
                               "at": ["root0"]})";
  const Cluster cluster(read(two_sockets(), fast), 1, 10_GBps, 0_s);
  CHECK(close(alone(cluster, cluster.route_from_drives(0)), 16_GBps, 1e-12));  // not 40
  CHECK(kinds(cluster, cluster.route_from_drives(0)) == std::set{LinkKind::drive, LinkKind::pcie});
}

TEST_CASE("no route to a GPU, an adapter or a processor changes because of drives") {
  for (const Preset& one : presets()) {
    const Cluster with = one.build(2);
    const Cluster without(without_drives(with.design()), 2, with.fabric().design());
    const int last = with.gpus() - 1;
    for (const auto& [from, to] : {std::pair(0, 1), std::pair(0, last)}) {
      INFO(one.name);
      CHECK(close(bottleneck(with, with.route(from, to)),
                  bottleneck(without, without.route(from, to)), 1e-12));
      CHECK(with.latency(from, to) == without.latency(from, to));
    }
    CHECK(with.nearest_nics(last) == without.nearest_nics(last));
    CHECK(with.route_to_host(last).size() == without.route_to_host(last).size());
    CHECK(without.route_from_drives(last).empty());
  }
}

TEST_CASE("a scenario says more or fewer drives, or others, and the rest stays") {
  const NodeDesign dgx = preset("dgx-2");
  const NodeDesign sixteen = read(dgx, R"({"count": 16})");
  CHECK(drive_count(sixteen) == 16);
  CHECK(*sixteen.drives == *dgx.drives);
  CHECK(places_of_drives(sixteen) == places_of_drives(dgx));
  const NodeDesign slower = read(dgx, R"({"write": "1 GB/s"})");
  CHECK(slower.drives->write == 1_GBps);
  CHECK(slower.drives->read == dgx.drives->read);
  CHECK(slower.drives->provenance == "the user's");
  CHECK_FALSE(read(dgx, R"({"count": 0})").drives);
  CHECK(read(dgx, R"({"count": 0})").vertices.size() == dgx.vertices.size() - 8);
  const NodeDesign lone = read(two_sockets(), four);
  CHECK(places_of_drives(lone) == processors_of(lone));
}

TEST_CASE("a server's drives go into its file and come back") {
  NodeDesign design = read(two_sockets(), R"({"count": 3, "capacity": "3.84 TB", "read": "3 GB/s",
      "write": "1 GB/s", "at": ["root1", "cpu0", "root1"], "provenance": "datasheet",
      "source": "of the drive"})");
  const std::string text = node_text({design, {}, ""});
  const NodeFile back = read_node(JsonReader::from_text(text, "node.json"));
  CHECK(*back.design.drives == *design.drives);
  CHECK(drive_count(back.design) == 3);
  CHECK(node_text(back) == text);
}

TEST_CASE("drives that cannot be are refused, with the place") {
  const NodeDesign server = two_sockets();
  CHECK_THAT(complaint(server, R"({"count": 4})"), ContainsSubstring("\"capacity\""));
  CHECK_THAT(complaint(server, R"({"capacity": "1 TB"})"), ContainsSubstring("\"count\""));
  CHECK_THAT(complaint(server, R"({"count": 1, "capacity": "0 B", "read": "1 GB/s",
                                   "write": "1 GB/s"})"),
             StartsWith("drives.json: /capacity: expected a value above 0"));
  CHECK_THAT(complaint(preset("dgx-2"), R"({"at": ["gpu0"]})"),
             ContainsSubstring("/at/0: expected a PCIe switch or a processor of the server"));
  CHECK_THAT(complaint(preset("dgx-2"), R"({"at": []})"), ContainsSubstring("/at: expected"));
  CHECK_THAT(complaint(preset("dgx-2"), R"({"speed": "1 GB/s"})"), ContainsSubstring("speed"));
  CHECK_THAT(complaint(preset("cpu-host"), four),
             ContainsSubstring("drives of servers whose GPUs have processors beside them"));
  NodeDesign stray = server;
  stray.add(VertexKind::drive, "drive0");
  CHECK_THROWS_AS(checked(stray), InputError);
}

}  // namespace stratagem::topology

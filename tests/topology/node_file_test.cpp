// Node files: presets go out and come back, what users write, and what is refused.
#include "topology/node_file.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"
#include "tests/topology/flow.hpp"
#include "topology/fabric_choice.hpp"
#include "topology/presets.hpp"

namespace stratagem::topology {

namespace {

NodeFile parse(const std::string& text) {
  return read_node(JsonReader::from_text(text, "node.json"));
}

std::string complaint(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// Two GPUs on a switch, each with an adapter.
const std::string small = R"({
  "name": "small", "gpu": "v100-sxm2", "port": "HDR",
  "vertices": {"gpu": 2, "pcie_switch": ["root"], "nic": 1},
  "links": [
    {"kind": "nvlink", "count": 2, "bandwidth": "25 GB/s", "latency": "25 ns",
      "pairs": [["gpu0", "gpu1"]]},
    {"kind": "pcie", "bandwidth": "126 Gb/s", "latency": "150 ns",
      "pairs": [[["gpu0", "gpu1", "nic0"], "root"]]}
  ]})";

FabricDesign fabric(const std::string& text, int nics = 8) {
  const auto reader = JsonReader::from_text(text, "fabric");
  FabricDesign design = read_fabric(reader, network_speed("HDR"), nics);
  reader.finish();
  return design;
}

std::string fabric_complaint(const std::string& text) {
  try {
    static_cast<void>(fabric(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("every preset goes into a node file and comes back as it was") {
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    const Cluster cluster = preset.build(1);
    const NodeDesign& design = cluster.design();
    const std::string text = node_text({design, cluster.fabric().design().speed, "a source"});
    const NodeFile back = parse(text);
    CHECK(back.design.name == design.name);
    CHECK(back.design.gpu == design.gpu);
    CHECK(back.design.compute_capability == design.compute_capability);
    CHECK(back.design.processor == design.processor);
    CHECK(back.design.host_memory == design.host_memory);
    CHECK(back.source == "a source");
    REQUIRE(back.port.has_value());
    CHECK(back.port->port == cluster.fabric().design().speed.port);
    CHECK(std::equal(back.design.vertices.begin(), back.design.vertices.end(),
                     design.vertices.begin(), design.vertices.end(),
                     [](const Vertex& x, const Vertex& y) {
                       return x.kind == y.kind && x.index == y.index && x.name == y.name;
                     }));
    CHECK(std::equal(back.design.links.begin(), back.design.links.end(), design.links.begin(),
                     design.links.end(), [](const Link& x, const Link& y) {
                       return x.a == y.a && x.b == y.b && x.kind == y.kind && x.count == y.count &&
                              x.bandwidth == y.bandwidth && x.latency == y.latency;
                     }));
    CHECK(node_text(back) == text);
  }
}

TEST_CASE("vertices are counted or named, and a pair may have several at an end") {
  const NodeFile node = parse(small);
  REQUIRE(node.design.vertices.size() == 4);
  CHECK(node.design.vertices[1].name == "gpu1");
  CHECK(node.design.vertices[2].kind == VertexKind::pcie_switch);
  REQUIRE(node.design.links.size() == 4);
  CHECK(node.design.links[0].bandwidth == 50_GBps);  // two cables of 25
  CHECK(node.design.links[3].a == 3);
  CHECK(node.design.links[3].b == 2);
  CHECK(node.design.links[3].bandwidth == 15.75_GBps);  // 126 Gb/s
  CHECK(node.port->port == 25_GBps);
  const Cluster cluster(node.design, 2, {.speed = *node.port});
  CHECK(close(bottleneck(cluster, cluster.route(0, 2)), 15.75_GBps, 1e-12));
}

TEST_CASE("a port of no known speed has figures of its own") {
  const NodeFile node =
      parse(with(small, "\"HDR\"", R"({"bandwidth": "50 Gb/s", "latency": "3 us"})"));
  CHECK(node.port->port == 6.25_GBps);
  CHECK(node.port->port_latency == 3_us);
  CHECK(node.port->switch_latency == 3_us);
  CHECK(parse(node_text(node)).port->port_latency == 3_us);
}

TEST_CASE("other kinds may be measured beside all-reduces") {
  const std::string measured = with(small, R"("port")", R"(
    "all_reduces": [{"servers": 2, "payload": "1 GB", "bus_bandwidth": "20 GB/s", "source": "a"}],
    "all_gathers": [{"servers": 2, "payload": "2 GB", "bus_bandwidth": "3 GB/s", "source": "b"}],
    "reduce_scatters": [{"servers": 4, "payload": "1 GB", "bus_bandwidth": "2 GB/s",
                         "source": "c"}], "port")");
  const NodeFile node = parse(measured);
  CHECK(node.design.measured.all_gathers == std::vector{MeasuredCollective{2, 2_GB, 3_GBps, "b"}});
  CHECK(node.design.measured.reduce_scatters ==
        std::vector{MeasuredCollective{4, 1_GB, 2_GBps, "c"}});
  CHECK(parse(node_text(node)).design.measured == node.design.measured);
  CHECK_THAT(complaint(with(small, R"("port")", R"("all_gathers": [{"servers": 2,
      "payload": "2 GB", "bus_bandwidth": "3 GB/s", "source": "b"}], "port")")),
             ContainsSubstring("expected all_reduces, too"));
}

TEST_CASE("measured all-reduces come in ascending numbers of servers, and go out again") {
  const std::string measured = with(small, R"("port")", R"("all_reduces": [
    {"servers": 2, "payload": "1 GB", "bus_bandwidth": "20 GB/s", "source": "a"},
    {"servers": 8, "payload": "1 GB", "bus_bandwidth": "40 Gb/s", "source": "b"}], "port")");
  const NodeFile node = parse(measured);
  REQUIRE(node.design.measured.all_reduces.size() == 2);
  CHECK(node.design.measured.all_reduces[1] ==
        MeasuredCollective{.servers = 8, .payload = 1_GB, .bus_bandwidth = 5_GBps, .source = "b"});
  CHECK(parse(node_text(node)).design.measured.all_reduces == node.design.measured.all_reduces);
  const auto of = [&](const std::string& from, const std::string& to) {
    return complaint(with(measured, from, to));
  };
  CHECK_THAT(of(R"("servers": 8)", R"("servers": 2)"), ContainsSubstring("more servers than"));
  CHECK_THAT(of(R"("servers": 2)", R"("servers": 1)"), ContainsSubstring("2 to"));
  CHECK_THAT(of("20 GB/s", "0 GB/s"), ContainsSubstring("a bandwidth above 0"));
  // One adapter of 25 GB/s; reductions in the network may double what it reaches.
  CHECK(of("20 GB/s", "50 GB/s") == "accepted");
  CHECK_THAT(of("20 GB/s", "51 GB/s"), ContainsSubstring("twice the 25 GB/s"));
  CHECK_THAT(of(R"("source": "a")", R"("source": "")"), ContainsSubstring("who measured it"));
  CHECK_THAT(
      of(R"("payload": "1 GB", "bus_bandwidth": "20)", R"("payload": "0 B", "bus_bandwidth": "20)"),
      ContainsSubstring("a size above 0"));
}

TEST_CASE("the memory of a server's processors is what the file says, or not known") {
  CHECK_FALSE(parse(small).design.host_memory);
  const std::string place = R"("port": "HDR",)";
  const auto with_memory = [&](const std::string& size) {
    return with(small, place, place + R"( "host_memory": ")" + size + "\",");
  };
  CHECK(parse(with_memory("1.5 TiB")).design.host_memory == 1536_GiB);
  CHECK(parse(with_memory("0 B")).design.host_memory == 0_B);
  CHECK_THAT(complaint(with_memory("much")),
             StartsWith("node.json: /host_memory: expected a size"));
}

TEST_CASE("what is wrong in a node file is told with its place") {
  CHECK(complaint(small) == "accepted");
  const auto refused = [](const std::string& part, const std::string& other) {
    return complaint(with(small, part, other));
  };
  CHECK_THAT(refused("\"gpu\": 2", "\"gpus\": 2"),
             StartsWith("node.json: /vertices: expected a kind of vertex (did you mean \"gpu\"?)"));
  CHECK_THAT(refused("[\"gpu0\", \"gpu1\"]]}", "[\"gpu0\", \"gpu2\"]]}"),
             StartsWith("node.json: /links/0/pairs/0/1: expected a vertex of the node"));
  CHECK_THAT(refused("[\"root\"]", "[\"root\", \"gpu0\"]"),
             StartsWith("node.json: /vertices/pcie_switch: expected names that no vertex before"));
  CHECK_THAT(refused("\"25 GB/s\"", "\"25 GB\""),
             StartsWith("node.json: /links/0/bandwidth: expected a bandwidth"));
  CHECK_THAT(refused("\"25 GB/s\"", "\"0 GB/s\""),
             StartsWith("node.json: /links/0/bandwidth: expected a bandwidth above 0"));
  CHECK_THAT(refused("\"count\": 2", "\"count\": 0"), StartsWith("node.json: /links/0/count"));
  CHECK_THAT(refused("\"count\": 2", "\"cables\": 2"),
             StartsWith("node.json: /links/0/cables: expected one of the known keys"));
  CHECK_THAT(refused("\"nvlink\"", "\"network\""), StartsWith("node.json: /links/0/kind"));
  CHECK_THAT(refused("\"port\"", "\"compute_capability\": 7.05, \"port\""),
             StartsWith("node.json: /compute_capability: expected"));
  CHECK_THAT(refused("\"port\"", "\"processor\": \"intel\", \"port\""),
             StartsWith("node.json: /processor: expected"));
  CHECK_THAT(refused("\"HDR\"", "\"HDD\""), ContainsSubstring("did you mean \"HDR\"?"));
  CHECK_THAT(refused("\"port\": \"HDR\",", ""), ContainsSubstring("expected the key \"port\""));
  CHECK_THAT(refused("[[\"gpu0\", \"gpu1\"]]}", "[[\"gpu0\"]]}"),
             StartsWith("node.json: /links/0/pairs/0: expected two vertices"));
  CHECK_THAT(refused("\"gpu0\", \"gpu1\"]]}", "\"gpu0\", \"gpu0\"]]}"),
             StartsWith("node.json: /links/0/pairs/0: expected two different vertices"));
  CHECK_THAT(refused("\"gpu\": 2", "\"gpu\": 3"),
             StartsWith("node.json: expected GPUs that reach each other"));
  CHECK_THAT(complaint(R"({"name": "host", "gpu": "none", "vertices": {"cpu": 2}})"),
             StartsWith("node.json: expected a node design with at least 1 GPU"));
}

TEST_CASE("a fabric takes from the servers what it does not say") {
  CHECK(fabric(R"({"kind": "single_switch"})").speed.name == "HDR");
  const FabricDesign tree =
      fabric(R"({"kind": "fat_tree", "rails": true, "oversubscription": 2, "speed": "NDR",)"
             R"( "nodes_per_leaf": 20})");
  CHECK(tree.kind == FabricKind::fat_tree);
  CHECK(tree.speed.port == 50_GBps);
  CHECK(tree.rails == 8);
  CHECK(tree.oversubscription == 2);
  CHECK(tree.ports_per_leaf == 20);
  // Four rails of eight adapters: two of each server on a leaf; without rails all eight.
  CHECK(fabric(R"({"kind": "fat_tree", "rails": 4, "nodes_per_leaf": 3})").ports_per_leaf == 6);
  CHECK(fabric(R"({"kind": "fat_tree", "rails": false, "nodes_per_leaf": 3})").ports_per_leaf ==
        24);
  CHECK(fabric(R"({"kind": "fat_tree", "radix": 36})").speed.radix == 36);
}

TEST_CASE("what is wrong in a fabric is told with its place") {
  CHECK_THAT(fabric_complaint(R"({"kind": "fat_trees"})"),
             ContainsSubstring("did you mean \"fat_tree\"?"));
  CHECK_THAT(fabric_complaint(R"({"kind": "fat_tree", "oversubscription": 0.5})"),
             StartsWith("fabric: /oversubscription: expected a ratio of 1 or more"));
  CHECK_THAT(fabric_complaint(R"({"kind": "fat_tree", "rails": 9})"), StartsWith("fabric: /rails"));
  CHECK_THAT(fabric_complaint(R"({"kind": "fat_tree", "speed": "XXL"})"),
             StartsWith("fabric: /speed"));
  CHECK_THAT(fabric_complaint(R"({"kind": "fat_tree", "radix": 1})"), StartsWith("fabric: /radix"));
  // A speed says what its kind of network is, also where one switch has no cable to another.
  const std::string speed =
      R"("speed": {"bandwidth": "25 GB/s", "latency": "1 us", "switch_latency": "2 us"}})";
  CHECK(fabric(R"({"kind": "fat_tree", )" + speed).speed.switch_latency == 2_us);
  CHECK(fabric(R"({"kind": "single_switch", )" + speed).speed.port_latency == 1_us);
  CHECK_THAT(fabric_complaint(R"({"kind": "single_switch", "rails": 8})"),
             StartsWith("fabric: /rails: expected one of the known keys"));
}

}  // namespace stratagem::topology

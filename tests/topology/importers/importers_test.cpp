// Importers, on what public sources show of real servers. The texts are put together here from what
// was read there; attributes that the reader does not look at are left out.
#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"
#include "tests/topology/flow.hpp"
#include "topology/importers/gpu_generation.hpp"
#include "topology/importers/import_node.hpp"
#include "topology/presets.hpp"

namespace stratagem::topology::importers {

namespace {

Cluster cluster_of(const NodeFile& node) {
  return {node.design, 1, FabricDesign{.speed = node.port.value_or(network_speeds().front())}};
}

std::size_t number_of(const NodeFile& node, VertexKind kind) {
  return all_of(cluster_of(node), kind).size();
}

NodeFile from_xml(const std::string& text, const Known& known = {}) {
  return without_far_adapters(import_nccl_xml(text, "topo.xml", known));
}

NodeFile from_matrix(const std::string& text, const Known& known) {
  return without_far_adapters(import_smi_matrix(text, "topo.txt", known));
}

template <typename Import>
std::string complaint(const Import& import_it) {
  try {
    static_cast<void>(import_it());
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// An HGX H100 as a virtual machine of IBM Cloud sees it (IBM Cloud documentation, "NVIDIA H100
/// cluster network profile", topology file): four GPUs and adapters on each socket, pairs of them
/// on a switch; each GPU has 4 NVLinks to switches f3 and f6, 5 to f4 and f5; adapters count
/// backwards; widths of 0.
std::string ibm_h100() {
  std::string text = "<system version=\"1\">\n";
  for (int gpu = 0; gpu < 8; ++gpu) {
    const std::string number = std::to_string(gpu);
    if (gpu % 4 == 0) {
      text += "<cpu host_hash=\"0xa5\" numaid=\"" + std::to_string(gpu / 4) +
              R"(" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">)";
    }
    text += "<pci busid=\"0000:a" + number +
            R"(:00.0" class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1">)";
    text += "<pci busid=\"0000:b" + number +
            R"(:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="0"><nic>)" +
            "<net name=\"mlx5_" + std::to_string(7 - gpu) + "\" dev=\"" + std::to_string(7 - gpu) +
            R"(" speed="200000" port="1" gdr="1"/></nic></pci>)";
    text += "<pci busid=\"0000:c" + number +
            R"(:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="0">)" +
            "<gpu dev=\"" + number + "\" sm=\"90\" rank=\"" + number + "\" gdr=\"1\">";
    for (const char* link :
         {"f5\" count=\"5", "f4\" count=\"5", "f3\" count=\"4", "f6\" count=\"4"})
      text += "<nvlink target=\"0000:" + std::string(link) + "\" tclass=\"0x068000\"/>\n";
    text += "</gpu></pci></pci>\n";
    if (gpu % 4 == 3) text += "</cpu>";
  }
  return text + "</system>\n";
}

/// Azure's NCv4 (azhpc-images, customizations/ncv4.sh): four A100 PCIe on a processor each, bridged
/// in pairs; nothing is said of PCIe; one adapter hangs on the first processor.
std::string azure_ncv4() {
  std::string text = "<system version=\"1\">";
  for (int gpu = 0; gpu < 4; ++gpu) {
    const auto bus = [](int i) { return "000" + std::to_string(i + 1) + ":00:00.0"; };
    const std::string number = std::to_string(gpu);
    text += "<cpu numaid=\"" + number +
            R"(" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">)" +
            "<pci busid=\"" + bus(gpu) + R"(" class="0x030200" link_speed="" link_width="0">)" +
            "<gpu dev=\"" + number + R"(" sm="80"><nvlink target=")" + bus(gpu ^ 1) +
            R"(" count="12" tclass="0x030200"/></gpu></pci>)";
    if (gpu == 0) text += R"(<nic><net name="eth0" dev="0" speed="100000" port="0"/></nic>)";
    text += "</cpu>";
  }
  return text + "</system>";
}

/// A matrix with the header that nvidia-smi underlines, and its legend.
std::string matrix(const std::vector<std::string>& names,
                   const std::vector<std::vector<std::string>>& cells,
                   const std::vector<std::string>& affinity) {
  std::string text = "\x1b[4m";
  for (const std::string& name : names) text += "\t" + name;
  text += "\tCPU Affinity\tNUMA Affinity\x1b[0m\n";
  for (std::size_t row = 0; row < names.size(); ++row) {
    text += names[row];
    for (const std::string& cell : cells[row]) text += "\t" + (cell == "X" ? " X " : cell);
    text += (row < affinity.size() ? "\t" + affinity[row] + "\t0" : "") + "\n";
  }
  return text +
         "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP\n";
}

/// Eight V100 SXM2 (kyumdoctor.tistory.com/74): NVLinks of the hybrid cube mesh, SYS elsewhere.
std::string v100_mesh() {
  const std::vector<std::vector<int>> mesh{{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                           {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                           {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                           {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
  std::vector<std::string> names;
  std::vector<std::string> affinity;
  std::vector<std::vector<std::string>> cells(8);
  for (std::size_t a = 0; a < 8; ++a) {
    names.push_back("GPU" + std::to_string(a));
    affinity.emplace_back(a < 4 ? "0-13,28-41" : "14-27,42-55");
    for (std::size_t b = 0; b < 8; ++b) {
      cells[a].push_back(a == b ? "X" : mesh[a][b] > 0 ? "NV" + std::to_string(mesh[a][b]) : "SYS");
    }
  }
  return matrix(names, cells, affinity);
}

/// Eight H100 (nccl#1453): NIC0 far from all, NICs 5 to 8 with GPUs 3 to 0, 1 to 4 with GPUs 7 to
/// 4.
std::string h100_matrix() {
  const auto partner = [](int nic) { return nic == 0 ? -1 : 8 - nic; };
  const auto socket = [&](int device) {
    const int gpu = device < 8 ? device : partner(device - 8);
    return gpu < 0 ? 2 : gpu / 4;
  };
  std::vector<std::string> names;
  std::vector<std::string> affinity;
  std::vector<std::vector<std::string>> cells(17);
  for (int a = 0; a < 17; ++a) {
    names.push_back(a < 8 ? "GPU" + std::to_string(a) : "NIC" + std::to_string(a - 8));
    if (a < 8) affinity.emplace_back(a < 4 ? "0-79" : "80-159");
    for (int b = 0; b < 17; ++b) {
      const bool beside =
          (a < 8 && b >= 8 && partner(b - 8) == a) || (b < 8 && a >= 8 && partner(a - 8) == b);
      cells[static_cast<std::size_t>(a)].push_back(a == b                   ? "X"
                                                   : a < 8 && b < 8         ? "NV18"
                                                   : beside                 ? "PIX"
                                                   : socket(a) == socket(b) ? "NODE"
                                                                            : "SYS");
    }
  }
  return matrix(names, cells, affinity);
}

}  // namespace

TEST_CASE("NCCL's topology of an HGX H100 gives the preset's NVLinks, and its own adapters") {
  const NodeFile node = from_xml(ibm_h100(), {.gpu = "h100-sxm5", .port = "", .name = "ibm"});
  const Cluster cluster = cluster_of(node);
  CHECK(node.design.gpu == "h100-sxm5");
  CHECK(node.design.compute_capability == 90);
  CHECK(node.design.processor == Processor::intel_sapphire_rapids);
  CHECK(cluster.gpus() == 8);
  CHECK(number_of(node, VertexKind::nv_switch) == 4);
  CHECK(number_of(node, VertexKind::pcie_switch) == 8);
  CHECK(number_of(node, VertexKind::cpu) == 2);
  CHECK(number_of(node, VertexKind::nic) == 8);
  CHECK(node.port->name == "200GbE");  // class 0x0200 and 200000 Mb/s
  for (int gpu = 0; gpu < 8; ++gpu) {
    CHECK(close(bottleneck(cluster, cluster.route(gpu, (gpu + 3) % 8)), 450_GBps, 1e-12));
    CHECK(cluster.nearest_nics(gpu) == std::vector{7 - gpu});
  }
  // 32 GT/s and no width: 16 lanes, 63 GB/s to the GPU; the switch has one lane of 2.5 GT/s up:
  // 2.5 x 8/10 / 8 = 0.25 GB/s.
  CHECK(close(bottleneck(cluster, cluster.route_to_host(0)), 0.25_GBps, 1e-12));
  CHECK(close(bottleneck(cluster, cluster.route_out(0, 7)), 25_GBps, 1e-12));
}

TEST_CASE("NCCL's topology of bridged A100 PCIe: pairs by NVLink, the others between processors") {
  const NodeFile node = from_xml(azure_ncv4());
  const Cluster cluster = cluster_of(node);
  CHECK(node.design.gpu == "sm80");  // nobody said which
  CHECK(number_of(node, VertexKind::nv_switch) == 0);
  CHECK(number_of(node, VertexKind::cpu) == 4);
  CHECK(close(bottleneck(cluster, cluster.route(0, 1)), 300_GBps, 1e-12));
  CHECK(close(bottleneck(cluster, cluster.route(2, 3)), 300_GBps, 1e-12));
  // PCIe of 16 lanes of 8 GT/s where nothing is said; 16 GB/s between AMD sockets (topo.h) is more.
  CHECK(close(bottleneck(cluster, cluster.route(0, 2)), 15.75_GBps, 1e-12));
  CHECK(node.port->name == "100GbE");
  CHECK(cluster.nearest_nics(3) == std::vector{0});
}

TEST_CASE("NVSwitches that not all GPUs reach stand as one, with all links of a GPU") {
  // As nccl#507 has a DGX-2: GPUs of a board reach the switches of their board; how the boards are
  // joined is not said.
  std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int gpu = 0; gpu < 4; ++gpu) {
    text += "<pci busid=\"g" + std::to_string(gpu) + "\"><gpu dev=\"" + std::to_string(gpu) +
            "\" sm=\"70\">";
    for (int i = 0; i < 6; ++i) {
      text += "<nvlink target=\"s" + std::to_string(gpu / 2 * 6 + i) +
              R"(" count="1" tclass="0x068000"/>)";
    }
    text += "</gpu></pci>";
  }
  const NodeFile node = from_xml(text + "</cpu></system>");
  CHECK(number_of(node, VertexKind::nv_switch) == 1);
  const Cluster cluster = cluster_of(node);
  CHECK(close(bottleneck(cluster, cluster.route(0, 3)), 150_GBps, 1e-12));
}

TEST_CASE("what a job did not see is not in the server: peers, slow adapters, adapters of others") {
  // GPUs 0 and 1 of a DGX-1V (nccl#671): links to GPUs that are not in the file. As in nccl#1505 an
  // adapter of 200 Gb/s near the GPUs, one of them elsewhere, and one of 100.
  const std::string text = R"(<system version="1">
    <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79">
      <pci busid="0000:03:00.0" class="0x060400" link_speed="8 GT/s" link_width="16">
        <pci busid="0000:06:00.0" class="0x030200" link_speed="8 GT/s" link_width="16">
          <gpu dev="0" sm="70" rank="0" gdr="1">
            <nvlink target="0000:07:00.0" count="1" tclass="0x030200"/>
            <nvlink target="0000:85:00.0" count="2" tclass="0x030200"/></gpu></pci>
        <pci busid="0000:07:00.0" class="0x030200" link_speed="8 GT/s" link_width="16">
          <gpu dev="1" sm="70" rank="1" gdr="1">
            <nvlink target="0000:06:00.0" count="1" tclass="0x030200"/></gpu></pci>
        <pci busid="0000:05:00.0" class="0x020700" link_speed="8 GT/s" link_width="16">
          <nic><net name="mlx5_0" dev="0" speed="200000"/></nic></pci>
      </pci>
      <pci busid="0000:61:00.0" class="0x020700" link_speed="8 GT/s" link_width="16">
        <nic><net name="mlx5_4" dev="4" speed="200000"/><net name="mlx5_5" dev="5" speed="100000"/>
          </nic></pci>
    </cpu></system>)";
  const NodeFile node = from_xml(text);
  const Cluster cluster = cluster_of(node);
  CHECK(cluster.gpus() == 2);
  CHECK(close(bottleneck(cluster, cluster.route(0, 1)), 25_GBps, 1e-12));
  CHECK(number_of(node, VertexKind::nic) == 1);
  CHECK(node.port->name == "HDR");
  CHECK_THAT(node.source, ContainsSubstring("slower than others: mlx5_5"));
  CHECK_THAT(node.source, ContainsSubstring("no GPU's nearest: nic1"));
  CHECK(node.design.processor == Processor::intel_broadwell);
}

TEST_CASE("C2C of a Grace and NVLink to switches that nobody sees (GB300)") {
  // Figures of a GB300 NVL72's tray in a public report: 18 links to target fffffff:ff:ff.0, C2C of
  // five links of 44712 MB/s.
  const std::string text = R"(<system version="1"><cpu numaid="0" arch="arm64">
    <pci busid="0008:06:00.0"><gpu dev="0" sm="103">
      <nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/><c2c bw="44712" count="5"/>
        </gpu></pci>
    <pci busid="0009:06:00.0"><gpu dev="1" sm="103">
      <nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/><c2c bw="44712" count="5"/>
        </gpu></pci>
    </cpu></system>)";
  const NodeFile node = from_xml(text);
  const Cluster cluster = cluster_of(node);
  CHECK(close(bottleneck(cluster, cluster.route(0, 1)), 900_GBps, 1e-12));
  CHECK(close(bottleneck(cluster, cluster.route_to_host(1)), 223.56_GBps, 1e-12));
  CHECK_FALSE(node.port.has_value());
}

TEST_CASE(
    "XML that is no topology of NCCL, or of a server that nobody has, is refused with its place") {
  const auto refused = [](const std::string& text) {
    return complaint([&] { return from_xml(text); });
  };
  CHECK_THAT(refused("<system>\n<cpu>\n</system>"), StartsWith("topo.xml: line 3: expected XML"));
  CHECK_THAT(refused("<graphs version=\"1\"/>"),
             StartsWith("topo.xml: expected the element <system> of a topology of NCCL"));
  CHECK_THAT(refused("<system><cpu/></system>"),
             StartsWith("topo.xml: /system: expected at least one <gpu>"));
  CHECK_THAT(refused(with(azure_ncv4(), "dev=\"3\"", "dev=\"three\"")),
             StartsWith("topo.xml: /system/cpu/pci/gpu: expected a whole number as \"dev\""));
  CHECK_THAT(refused(with(azure_ncv4(), "dev=\"3\"", "dev=\"2\"")),
             StartsWith("topo.xml: /system/cpu/pci[0004:00:00.0]: expected a number of its own"));
  CHECK_THAT(refused(with(azure_ncv4(), "dev=\"3\" sm=\"80\"", "dev=\"3\" sm=\"90\"")),
             StartsWith("topo.xml: /system/cpu/pci/gpu: expected GPUs of one kind"));
  std::string unknown = azure_ncv4();
  for (std::size_t at = 0; (at = unknown.find("sm=\"80\"", at)) != std::string::npos;)
    unknown.replace(at, 7, "sm=\"50\"");
  CHECK_THAT(refused(unknown), ContainsSubstring("expected GPUs whose NVLinks we know"));
  const auto grace = [](const std::string& links) {
    return R"(<system version="1"><cpu numaid="0" arch="arm64">
      <pci busid="0008:06:00.0" link_width="16">
      <gpu dev="0" sm="103">)" +
           links + "</gpu></pci></cpu></system>";
  };
  const std::string switched = R"(<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>)";
  CHECK(refused(grace(switched + R"(<c2c bw="44712" count="5"/>)")) == "accepted");
  for (const char* count : {"1000000", "-1", "0"}) {
    CHECK_THAT(
        refused(grace(switched + R"(<c2c bw="44712" count=")" + count + "\"/>")),
        ContainsSubstring(std::string("/c2c: expected 1 to 1000 as \"count\", found ") + count));
    CHECK_THAT(
        refused(grace(with(switched, "18", count))),
        ContainsSubstring(std::string("/nvlink: expected 1 to 1000 as \"count\", found ") + count));
  }
  CHECK_THAT(refused(grace(switched + R"(<c2c bw="-1" count="5"/>)")),
             ContainsSubstring("expected 1 to 1000000000 as \"bw\", found -1"));
  CHECK_THAT(refused(with(grace(switched), "link_width=\"16\"", "link_width=\"-16\"")),
             ContainsSubstring("expected 1 to 1000 as \"link_width\", found -16"));
}

TEST_CASE("the matrix of eight V100 gives the mesh of the DGX-1V") {
  const NodeFile node = from_matrix(v100_mesh(), {.gpu = "v100-sxm2", .port = "", .name = "v100"});
  const Cluster found = cluster_of(node);
  const Cluster expected = presets()[0].build(1);
  CHECK(number_of(node, VertexKind::nv_switch) == 0);
  CHECK(number_of(node, VertexKind::cpu) == 2);
  CHECK(node.design.compute_capability == 70);
  CHECK_FALSE(node.port.has_value());
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      if (a == b) continue;
      CHECK(kinds(found, found.route(a, b)).contains(LinkKind::nvlink) ==
            kinds(expected, expected.route(a, b)).contains(LinkKind::nvlink));
      CHECK(close(bottleneck(found, found.route(a, b)), bottleneck(expected, expected.route(a, b)),
                  1e-12));
    }
  }
}

TEST_CASE("the matrix of eight H100: one switch for all NVLinks, an adapter beside each GPU") {
  const NodeFile node =
      from_matrix(h100_matrix(), {.gpu = "h100-sxm5", .port = "NDR", .name = "h100"});
  const Cluster cluster = cluster_of(node);
  CHECK(number_of(node, VertexKind::nv_switch) == 1);
  CHECK(number_of(node, VertexKind::pcie_switch) == 8);
  CHECK(number_of(node, VertexKind::nic) == 8);
  CHECK_THAT(node.source, ContainsSubstring("left out, since no GPU's nearest: nic0"));
  for (int gpu = 0; gpu < 8; ++gpu) {
    CHECK(close(bottleneck(cluster, cluster.route(gpu, (gpu + 5) % 8)), 450_GBps, 1e-12));
    CHECK(cluster.nearest_nics(gpu) == std::vector{7 - gpu});  // without NIC0
    CHECK(close(bottleneck(cluster, cluster.route_to_host(gpu)), 63_GBps, 1e-12));
  }
}

TEST_CASE("switches under switches: PIX and PXB as in a DGX-2 (nccl-tests#78)") {
  // Two of its GPU pairs with their adapters: PIX within, PXB between, all on one socket.
  std::vector<std::string> names{"GPU0", "GPU1", "GPU2", "GPU3", "mlx5_0", "mlx5_1"};
  std::vector<std::vector<std::string>> cells(6);
  const std::vector<int> pair{0, 0, 1, 1, 0, 1};
  for (std::size_t a = 0; a < 6; ++a) {
    for (std::size_t b = 0; b < 6; ++b) {
      cells[a].push_back(a == b               ? "X"
                         : a < 4 && b < 4     ? "NV6"
                         : pair[a] == pair[b] ? "PIX"
                                              : "PXB");
    }
  }
  const NodeFile node =
      from_matrix(matrix(names, cells, {}), {.gpu = "v100-sxm3", .port = "EDR", .name = "half"});
  const Cluster cluster = cluster_of(node);
  CHECK(number_of(node, VertexKind::pcie_switch) == 3);
  CHECK(number_of(node, VertexKind::cpu) == 1);
  CHECK(cluster.route_out(0, 0).size() == 3);  // leaf, adapter, port
  CHECK(cluster.route_out(0, 1).size() == 5);  // leaf, root, leaf, adapter, port
}

TEST_CASE("a matrix that contradicts itself, or does not say enough, is refused") {
  const Known known{.gpu = "v100-sxm2", .port = "EDR", .name = "a"};
  const auto refused = [&](const std::string& text) {
    return complaint([&] { return from_matrix(text, known); });
  };
  const std::string pair =
      "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-63\nGPU1\tPHB\t X \t0-63\n";
  CHECK(refused(pair) == "accepted");
  CHECK(refused("GPU0\tCPU Affinity\nGPU0\tX\t0-3\n") == "accepted");
  CHECK_THAT(refused("hello\n"), StartsWith("topo.txt: expected a topology of NCCL (XML), or"));
  CHECK_THAT(refused(with(pair, "GPU1\tPHB\t X \t0-63\n", "")), ContainsSubstring("1 of 2 rows"));
  CHECK_THAT(refused(with(pair, "GPU1\tPHB\t X ", "GPU1\tPXB\t X ")),
             StartsWith("topo.txt: GPU1 - GPU0: expected the same both ways, found PXB and PHB"));
  CHECK_THAT(refused(with(pair, "GPU1\tPHB\t X ", "GPU1\tPHB\t NV1 ")),
             StartsWith("topo.txt: GPU1 - GPU1: expected X on the diagonal only"));
  CHECK_THAT(refused(with(pair, "GPU1\tPHB", "GPU1\tGNS")),
             StartsWith("topo.txt: line 3: expected X, NV#, PIX"));
  CHECK_THAT(refused(with(pair, "GPU1\tPHB", "GPU7\tPHB")),
             StartsWith("topo.txt: line 3: expected the row of GPU1"));
  CHECK_THAT(complaint([&] { return from_matrix(pair, {.gpu = "", .port = "", .name = "a"}); }),
             StartsWith("topo.txt: expected the GPU (--gpu)"));
  CHECK_THAT(complaint([&] {
               return from_matrix(h100_matrix(), {.gpu = "h100-sxm5", .port = "", .name = "a"});
             }),
             StartsWith("topo.txt: expected the speed of the adapters (--port)"));
}

TEST_CASE("what was imported is a node file like any other") {
  const NodeFile node = from_xml(ibm_h100(), {.gpu = "h100-sxm5", .port = "NDR", .name = "ibm"});
  const NodeFile back = read_node(JsonReader::from_text(node_text(node), "node.json"));
  CHECK(back.source == node.source);
  CHECK(back.port->name == "NDR");
  const Cluster there = cluster_of(back);
  CHECK(close(bottleneck(there, there.route(0, 7)), 450_GBps, 1e-12));
  CHECK(generation_of("h100-sxm5")->nvlink == 25_GBps);
  CHECK(generation_of("h1000") == nullptr);
}

}  // namespace stratagem::topology::importers

// Reads the topology that NCCL writes (NCCL_TOPO_DUMP_FILE).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/input_error.hpp"
#include "topology/importers/import_node.hpp"
#include "topology/importers/inside/nccl_nvlinks.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology::importers {

namespace {

using pugi::xml_node;

/// The format: elements and attributes of src/graph/xml.cc and topo.cc of NVIDIA/nccl 2.28.9, whose
/// defaults for what is missing are taken too.
class Reader {
 public:
  Reader(const std::string& file, const Known& known) : file_(file), known_(known), in_(file) {}

  NodeFile read(const std::string& text) {
    const pugi::xml_parse_result parsed = document_.load_buffer(text.data(), text.size());
    if (!parsed) {
      const auto line = 1 + std::count(text.begin(), text.begin() + parsed.offset, '\n');
      throw InputError(file_, fmt::format("line {}", line), "XML", parsed.description());
    }
    const xml_node system = document_.child("system");
    if (!system) in_.refuse(document_, "the element <system> of a topology of NCCL", "");
    devices_ = devices_of(in_, system);
    node_.design.name = known_.name;
    add_vertices(system);
    add_processor_links(system);
    for (const xml_node cpu : system.children("cpu")) add_tree(cpu, ids_.at(cpu));
    NcclNvLinks links(in_, node_.design);
    for (const Numbered& gpu : devices_.gpus)
      links.add(gpu, ids_.at(gpu.element), ids_.at(gpu.cpu), by_bus_);
    links.finish(devices_.gpus.front().element);
    finish_port();
    node_.source =
        "topology of NCCL, " + file_ +
        "; NVLink rates by compute capability; between sockets what NCCL counts on; "
        "latencies assumed" +
        (devices_.dropped.empty() ? ""
                                  : "; left out, since slower than others: " + devices_.dropped);
    return std::move(node_);
  }

 private:
  static bool is_switch(const xml_node& pci) { return static_cast<bool>(pci.child("pci")); }

  void add_vertices(const xml_node& system) {
    NodeDesign& design = node_.design;
    for (std::size_t i = 0; i < devices_.gpus.size(); ++i) {
      const Numbered& gpu = devices_.gpus[i];
      if (i > 0 && devices_.gpus[i - 1].host == gpu.host && devices_.gpus[i - 1].dev == gpu.dev)
        in_.refuse(gpu.element.parent(), "a number of its own for every GPU",
                   std::to_string(gpu.dev));
      ids_[gpu.element] = design.add(VertexKind::gpu, "gpu" + std::to_string(i));
      by_bus_[{gpu.host, gpu.element.parent().attribute("busid").value()}] = ids_[gpu.element];
      check_capability(gpu);
    }
    for (const xml_node cpu : system.children("cpu")) add_switches(cpu);
    for (const xml_node cpu : system.children("cpu")) {
      const auto count = std::ranges::count(design.vertices, VertexKind::cpu, &Vertex::kind);
      ids_[cpu] = design.add(VertexKind::cpu, "cpu" + std::to_string(count));
      design.processor = processor_of(cpu);
    }
    for (const Numbered& net : devices_.nets) {
      const auto [found, fresh] = adapters_.emplace(std::pair{net.host, net.dev}, 0);
      if (fresh) {
        const auto count = std::ranges::count(design.vertices, VertexKind::nic, &Vertex::kind);
        found->second = design.add(VertexKind::nic, "nic" + std::to_string(count));
      }
      ids_[net.element] = found->second;
    }
  }

  void check_capability(const Numbered& gpu) {
    const int capability = in_.whole(gpu.element, "sm", {});
    if (node_.design.compute_capability != 0 && node_.design.compute_capability != capability)
      in_.refuse(gpu.element, "GPUs of one kind", fmt::format("sm=\"{}\"", capability));
    node_.design.compute_capability = capability;
    node_.design.gpu = known_.gpu.empty() ? fmt::format("sm{}", capability) : known_.gpu;
  }

  void add_switches(const xml_node& at) {
    for (const xml_node child : at.children("pci")) {
      if (!is_switch(child)) continue;
      ids_[child] = node_.design.add(VertexKind::pcie_switch, "pcie" + std::to_string(switches_++));
      add_switches(child);
    }
  }

  /// Model 85 is Skylake's, 143 Sapphire Rapids', 207 Emerald Rapids'; the others count as
  /// Broadwell.
  static Processor processor_of(const xml_node& cpu) {
    const std::string vendor = cpu.attribute("vendor").value();
    if (vendor == "AuthenticAMD") return Processor::amd;
    if (vendor != "GenuineIntel") return Processor::unknown;
    const int model = cpu.attribute("modelid").as_int();
    if (model >= 207) return Processor::intel_emerald_rapids;
    if (model >= 143) return Processor::intel_sapphire_rapids;
    return model >= 85 ? Processor::intel_skylake : Processor::intel_broadwell;
  }

  void add_processor_links(const xml_node& system) {
    for (const xml_node a : system.children("cpu")) {
      for (xml_node b = a.next_sibling("cpu"); b; b = b.next_sibling("cpu")) {
        if (devices_.host_of(a) != devices_.host_of(b)) continue;
        node_.design.join(ids_.at(a), ids_.at(b), LinkKind::inter_socket, 1,
                          nccl_socket_rate(node_.design.processor), parts::socket_latency);
      }
    }
  }

  /// 8b/10b coding for 2.5 and 5 GT/s, 128b/130b (rounded as in the presets) up to 32, 242 of a
  /// flit's 256 bytes for 64. NCCL takes 16 lanes of 8 GT/s where a virtual machine says nothing.
  BytesPerSecond pcie_rate(const xml_node& pci) const {
    const int said = in_.whole(pci, "link_width", 0);
    const int lanes = said == 0 ? 16 : in_.positive(pci, "link_width", {}, most_links);
    const std::string speed = pci.attribute("link_speed").value();
    double rate = 8;
    if (!speed.empty()) {
      const auto result = std::from_chars(speed.data(), speed.data() + speed.size(), rate);
      if (result.ec != std::errc{} || !(rate > 0 && rate <= most_links))
        in_.refuse(pci, "a link_speed such as \"16.0 GT/s PCIe\"", '"' + speed + '"');
    }
    const double coding = rate < 8 ? 0.8 : rate < 64 ? 0.984375 : 0.9453125;
    return lanes * (rate * coding / 8) * 1_GBps;
  }

  /// What hangs on a processor or a PCIe switch. An adapter that hangs on none is not held up.
  void add_tree(const xml_node& at, VertexId above) {
    for (const xml_node pci : at.children("pci")) {
      const BytesPerSecond rate = pcie_rate(pci);
      const auto join = [&](VertexId below) {
        node_.design.join(below, above, LinkKind::pcie, 1, rate, parts::pcie_latency);
      };
      if (is_switch(pci)) {
        join(ids_.at(pci));
        add_tree(pci, ids_.at(pci));
        continue;
      }
      for (const xml_node gpu : pci.children("gpu")) join(ids_.at(gpu));
      for_nets(pci, join);
    }
    if (std::string(at.name()) != "cpu") return;
    for_nets(at, [&](VertexId nic) {
      node_.design.join(nic, above, LinkKind::pcie, 1, 1000_GBps, parts::pcie_latency);
    });
  }

  template <typename Use>
  void for_nets(const xml_node& at, const Use& use) const {
    for (const xml_node nic : at.children("nic")) {
      for (const xml_node net : nic.children("net")) {
        if (const auto found = ids_.find(net); found != ids_.end()) use(found->second);
      }
    }
  }

  /// The known speed of that rate: InfiniBand's by the adapters' class, else Ethernet's.
  void finish_port() {
    if (devices_.nets.empty()) return;
    if (!known_.port.empty()) {
      node_.port = network_speed(known_.port);
      return;
    }
    xml_node pci = devices_.nets.front().element;
    while (pci && std::string(pci.name()) != "pci") pci = pci.parent();
    const bool infiniband = std::string(pci.attribute("class").value()).starts_with("0x0207");
    const BytesPerSecond rate = devices_.fastest / 8000.0 * 1_GBps;
    NetworkSpeed port = network_speed("100GbE");
    port.name = "";
    port.port = rate;
    for (const NetworkSpeed& speed : network_speeds()) {
      if (speed.port == rate && infiniband != speed.name.ends_with("GbE")) port = speed;
    }
    node_.port = port;
  }

  struct ByHash {
    bool operator()(const xml_node& a, const xml_node& b) const {
      return a.hash_value() < b.hash_value();
    }
  };

  const std::string& file_;
  const Known& known_;
  NcclFile in_;
  pugi::xml_document document_;
  NodeFile node_;
  NcclDevices devices_;
  std::map<xml_node, VertexId, ByHash> ids_;
  std::map<std::pair<int, std::string>, VertexId> by_bus_;  ///< host and bus: GPU
  std::map<std::pair<int, int>, VertexId> adapters_;        ///< host and number
  int switches_ = 0;
};

}  // namespace

NodeFile import_nccl_xml(const std::string& text, const std::string& file, const Known& known) {
  return Reader(file, known).read(text);
}

}  // namespace stratagem::topology::importers

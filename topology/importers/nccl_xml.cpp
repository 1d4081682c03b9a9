// Reads the topology that NCCL writes (NCCL_TOPO_DUMP_FILE).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <tuple>

#include "base/input_error.hpp"
#include "topology/importers/gpu_generation.hpp"
#include "topology/importers/import_node.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology::importers {

namespace {

using pugi::xml_node;

/// GPUs and adapters in the order of their hosts and numbers; elements in the order of the file.
struct Numbered {
  int host = 0;
  int dev = 0;
  xml_node element;
  xml_node cpu;
};

constexpr int most_links = 1000;
constexpr int most_rate = 1'000'000'000;  ///< MB/s of a link, Mb/s of an adapter

/// Attributes of the file's elements.
struct Attributes {
  std::string file;

  [[noreturn]] void refuse(const xml_node& where, const std::string& expected,
                           const std::string& found) const {
    const char* bus = where.attribute("busid").value();
    throw InputError(file, where.path() + (*bus != '\0' ? fmt::format("[{}]", bus) : ""), expected,
                     found);
  }

  /// A whole number; `otherwise` where the attribute is missing or empty.
  int whole(const xml_node& element, const char* name, std::optional<int> otherwise) const {
    const std::string text = element.attribute(name).value();
    if (text.empty() && otherwise) return *otherwise;
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
      refuse(element, fmt::format("a whole number as \"{}\"", name), '"' + text + '"');
    return value;
  }

  /// A count of links, or a rate: from 1 to what no machine exceeds.
  int positive(const xml_node& element, const char* name, std::optional<int> otherwise,
               int most) const {
    const int value = whole(element, name, otherwise);
    if (value < 1 || value > most)
      refuse(element, fmt::format("1 to {} as \"{}\"", most, name), std::to_string(value));
    return value;
  }
};

struct ByHash {
  bool operator()(const xml_node& a, const xml_node& b) const {
    return a.hash_value() < b.hash_value();
  }
};

/// The vertices that elements have become, and the buses of GPUs.
struct Vertices {
  std::map<xml_node, VertexId, ByHash> of;
  std::map<std::pair<int, std::string>, VertexId> by_bus;  ///< host and bus: GPU
};

/// The NVLinks of all GPUs, each of which both ends may tell of.
class NvLinks {
 public:
  NvLinks(const Attributes& attributes, const Vertices& vertices, NodeDesign& design)
      : attributes_(attributes), vertices_(vertices), design_(design) {}

  void add(const Numbered& gpu) {
    const VertexId own = vertices_.of.at(gpu.element);
    for (const xml_node link : gpu.element.children("nvlink")) {
      const std::string target = link.attribute("target").value();
      const std::string kind = link.attribute("tclass").value();
      const int count = attributes_.positive(link, "count", 1, most_links);
      const auto peer = vertices_.by_bus.find({gpu.host, target});
      if (peer != vertices_.by_bus.end()) {
        int& both = pairs_[std::minmax(own, peer->second)];
        both = std::max(both, count);  // each end says so
      } else if (kind.starts_with("0x068001")) {
        design_.join(own, vertices_.of.at(gpu.cpu), LinkKind::c2c, count, rate(link),
                     parts::nvlink_latency);
      } else if (kind.starts_with("0x0680")) {
        to_switches_[target][own] += count;
      } else if (!kind.starts_with("0x03")) {  // to a GPU that the job did not see
        attributes_.refuse(link, "an NVLink to a GPU of the file or to an NVSwitch",
                           '"' + target + '"');
      }
    }
    for (const xml_node link : gpu.element.children("c2c")) {  // "bw" of one link in MB/s
      design_.join(own, vertices_.of.at(gpu.cpu), LinkKind::c2c,
                   attributes_.positive(link, "count", 1, most_links),
                   attributes_.positive(link, "bw", {}, most_rate) * (1_GBps / 1000.0),
                   parts::nvlink_latency);
    }
  }

  /// Switches that not all GPUs reach stand as one, as NCCL has them: how they are joined is not
  /// said.
  void finish(const xml_node& first) {
    for (const auto& [pair, count] : pairs_) {
      design_.join(pair.first, pair.second, LinkKind::nvlink, count, rate(first),
                   parts::nvlink_latency);
    }
    std::map<VertexId, int> together;
    bool all = true;
    for (const auto& [target, ends] : to_switches_) {
      for (const auto& [gpu, count] : ends) together[gpu] += count;
    }
    for (const auto& [target, ends] : to_switches_) all = all && ends.size() == together.size();
    if (!all) to_switches_ = {{"", together}};
    int number = 0;
    for (const auto& [target, ends] : to_switches_) {
      const VertexId nv_switch =
          design_.add(VertexKind::nv_switch, "nvswitch" + std::to_string(number++));
      for (const auto& [gpu, count] : ends) {
        design_.join(gpu, nv_switch, LinkKind::nvlink, count, rate(first), parts::nvlink_latency);
      }
    }
  }

 private:
  [[nodiscard]] BytesPerSecond rate(const xml_node& where) const {
    const BytesPerSecond known = nvlink_of(design_.compute_capability);
    if (known <= BytesPerSecond{}) {
      attributes_.refuse(where, "GPUs whose NVLinks we know",
                         fmt::format("sm=\"{}\"", design_.compute_capability));
    }
    return known;
  }

  const Attributes& attributes_;
  const Vertices& vertices_;
  NodeDesign& design_;
  std::map<std::pair<VertexId, VertexId>, int> pairs_;  ///< NVLinks between GPUs
  std::map<std::string, std::map<VertexId, int>> to_switches_;
};

/// The format: elements and attributes of src/graph/xml.cc and topo.cc of NVIDIA/nccl 2.28.9, whose
/// defaults for what is missing are taken too.
class Reader {
 public:
  Reader(const std::string& file, const Known& known) : attributes_{file}, known_(known) {}

  NodeFile read(const std::string& text) {
    const pugi::xml_parse_result parsed = document_.load_buffer(text.data(), text.size());
    if (!parsed) {
      const auto line = 1 + std::count(text.begin(), text.begin() + parsed.offset, '\n');
      throw InputError(attributes_.file, fmt::format("line {}", line), "XML", parsed.description());
    }
    const xml_node system = document_.child("system");
    if (!system) attributes_.refuse(document_, "the element <system> of a topology of NCCL", "");
    collect(system);
    node_.design.name = known_.name;
    add_vertices(system);
    add_processor_links(system);
    for (const xml_node cpu : system.children("cpu")) add_tree(cpu, vertices_.of.at(cpu));
    NvLinks links(attributes_, vertices_, node_.design);
    for (const Numbered& gpu : gpus_) links.add(gpu);
    links.finish(gpus_.front().element);
    finish_port();
    node_.source = "topology of NCCL, " + attributes_.file +
                   "; NVLink rates by compute capability; between sockets what NCCL counts on; "
                   "latencies assumed" +
                   dropped_;
    return std::move(node_);
  }

 private:
  int host_of(const xml_node& cpu) {
    const std::string hash = cpu.attribute("host_hash").value();
    return hosts_.emplace(hash, static_cast<int>(hosts_.size())).first->second;
  }

  void collect(const xml_node& system) {
    for (const xml_node cpu : system.children("cpu")) collect(cpu, cpu, host_of(cpu));
    const auto order = [](const Numbered& x, const Numbered& y) {
      return std::tie(x.host, x.dev) < std::tie(y.host, y.dev);
    };
    std::stable_sort(gpus_.begin(), gpus_.end(), order);
    std::stable_sort(nets_.begin(), nets_.end(), order);
    drop_slow_adapters();
    if (gpus_.empty()) attributes_.refuse(system, "at least one <gpu>", "");
  }

  void collect(const xml_node& at, const xml_node& cpu, int host) {
    for (const xml_node child : at.children()) {
      const std::string name = child.name();
      if (name == "gpu") {
        gpus_.push_back({host, attributes_.whole(child, "dev", {}), child, cpu});
      } else if (name == "net") {
        const bool used = child.attribute("dev") && attributes_.whole(child, "net", 1) != 0;
        if (used) nets_.push_back({host, attributes_.whole(child, "dev", {}), child, cpu});
      } else {
        collect(child, cpu, host);
      }
    }
  }

  static bool is_switch(const xml_node& pci) { return static_cast<bool>(pci.child("pci")); }

  /// NCCL takes 10 Gb/s where none is said.
  [[nodiscard]] int speed_of(const Numbered& net) const {
    const int speed = attributes_.whole(net.element, "speed", 0);
    if (speed == 0) return 10'000;
    return attributes_.positive(net.element, "speed", {}, most_rate);
  }

  /// Slower adapters than the fastest are there for something else.
  void drop_slow_adapters() {
    for (const Numbered& net : nets_) fastest_ = std::max(fastest_, speed_of(net));
    std::string dropped;
    std::erase_if(nets_, [&](const Numbered& net) {
      const bool slow = speed_of(net) < fastest_;
      if (slow && !dropped.empty()) dropped += ", ";
      if (slow) dropped += net.element.attribute("name").value();
      return slow;
    });
    if (!dropped.empty()) dropped_ = "; left out, since slower than others: " + dropped;
  }

  void add_vertices(const xml_node& system) {
    NodeDesign& design = node_.design;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const Numbered& gpu = gpus_[i];
      if (i > 0 && gpus_[i - 1].host == gpu.host && gpus_[i - 1].dev == gpu.dev)
        attributes_.refuse(gpu.element.parent(), "a number of its own for every GPU",
                           std::to_string(gpu.dev));
      vertices_.of[gpu.element] = design.add(VertexKind::gpu, "gpu" + std::to_string(i));
      vertices_.by_bus[{gpu.host, gpu.element.parent().attribute("busid").value()}] =
          vertices_.of[gpu.element];
      check_capability(gpu);
    }
    for (const xml_node cpu : system.children("cpu")) add_switches(cpu);
    for (const xml_node cpu : system.children("cpu")) {
      const auto count = std::ranges::count(design.vertices, VertexKind::cpu, &Vertex::kind);
      vertices_.of[cpu] = design.add(VertexKind::cpu, "cpu" + std::to_string(count));
      design.processor = processor_of(cpu);
    }
    for (const Numbered& net : nets_) {
      const auto [found, fresh] = adapters_.emplace(std::pair{net.host, net.dev}, 0);
      if (fresh) {
        const auto count = std::ranges::count(design.vertices, VertexKind::nic, &Vertex::kind);
        found->second = design.add(VertexKind::nic, "nic" + std::to_string(count));
      }
      vertices_.of[net.element] = found->second;
    }
  }

  void check_capability(const Numbered& gpu) {
    const int capability = attributes_.whole(gpu.element, "sm", {});
    if (node_.design.compute_capability != 0 && node_.design.compute_capability != capability)
      attributes_.refuse(gpu.element, "GPUs of one kind", fmt::format("sm=\"{}\"", capability));
    node_.design.compute_capability = capability;
    node_.design.gpu = known_.gpu.empty() ? fmt::format("sm{}", capability) : known_.gpu;
  }

  void add_switches(const xml_node& at) {
    for (const xml_node child : at.children("pci")) {
      if (!is_switch(child)) continue;
      vertices_.of[child] =
          node_.design.add(VertexKind::pcie_switch, "pcie" + std::to_string(switches_++));
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
        if (host_of(a) != host_of(b)) continue;
        node_.design.join(vertices_.of.at(a), vertices_.of.at(b), LinkKind::inter_socket, 1,
                          nccl_socket_rate(node_.design.processor), parts::socket_latency);
      }
    }
  }

  /// 8b/10b coding for 2.5 and 5 GT/s, 128b/130b (rounded as in the presets) up to 32, 242 of a
  /// flit's 256 bytes for 64. NCCL takes 16 lanes of 8 GT/s where a virtual machine says nothing.
  BytesPerSecond pcie_rate(const xml_node& pci) const {
    const int said = attributes_.whole(pci, "link_width", 0);
    const int lanes = said == 0 ? 16 : attributes_.positive(pci, "link_width", {}, most_links);
    const std::string speed = pci.attribute("link_speed").value();
    double rate = 8;
    if (!speed.empty()) {
      const auto result = std::from_chars(speed.data(), speed.data() + speed.size(), rate);
      if (result.ec != std::errc{} || !(rate > 0 && rate <= most_links))
        attributes_.refuse(pci, "a link_speed such as \"16.0 GT/s PCIe\"", '"' + speed + '"');
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
        join(vertices_.of.at(pci));
        add_tree(pci, vertices_.of.at(pci));
        continue;
      }
      for (const xml_node gpu : pci.children("gpu")) join(vertices_.of.at(gpu));
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
        if (const auto found = vertices_.of.find(net); found != vertices_.of.end())
          use(found->second);
      }
    }
  }

  /// The known speed of that rate: InfiniBand's by the adapters' class, else Ethernet's.
  void finish_port() {
    if (nets_.empty()) return;
    if (!known_.port.empty()) {
      node_.port = network_speed(known_.port);
      return;
    }
    xml_node pci = nets_.front().element;
    while (pci && std::string(pci.name()) != "pci") pci = pci.parent();
    const bool infiniband = std::string(pci.attribute("class").value()).starts_with("0x0207");
    const BytesPerSecond rate = fastest_ / 8000.0 * 1_GBps;
    NetworkSpeed port = network_speed("100GbE");
    port.name = "";
    port.port = rate;
    for (const NetworkSpeed& speed : network_speeds()) {
      if (speed.port == rate && infiniband != speed.name.ends_with("GbE")) port = speed;
    }
    node_.port = port;
  }

  Attributes attributes_;
  const Known& known_;
  pugi::xml_document document_;
  NodeFile node_;
  std::map<std::string, int> hosts_;
  std::vector<Numbered> gpus_;
  std::vector<Numbered> nets_;
  Vertices vertices_;
  std::map<std::pair<int, int>, VertexId> adapters_;  ///< host and number
  int switches_ = 0;
  int fastest_ = 0;      ///< of the adapters, in Mb/s
  std::string dropped_;  ///< adapters, to be told
};

}  // namespace

NodeFile import_nccl_xml(const std::string& text, const std::string& file, const Known& known) {
  return Reader(file, known).read(text);
}

}  // namespace stratagem::topology::importers

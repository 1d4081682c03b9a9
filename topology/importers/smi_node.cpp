// A server from the matrix of `nvidia-smi topo -m`: what hangs together how closely, and the rates
// of the GPU's generation.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/input_error.hpp"
#include "topology/importers/gpu_generation.hpp"
#include "topology/importers/import_node.hpp"
#include "topology/importers/smi_matrix.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology::importers {

namespace {

/// Each device's group: the first device of those that `near` joins, directly or by way of others.
std::vector<std::size_t> groups(std::size_t size,
                                const std::function<bool(std::size_t, std::size_t)>& near) {
  std::vector<std::size_t> first(size);
  std::iota(first.begin(), first.end(), 0);
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = a + 1; b < size; ++b) {
      if (!near(a, b) || first[a] == first[b]) continue;
      const auto [low, high] = std::minmax({first[a], first[b]});
      const std::size_t keep = low;
      const std::size_t gone = high;
      std::ranges::replace(first, gone, keep);
    }
  }
  return first;
}

class Builder {
 public:
  Builder(const SmiMatrix& matrix, const GpuGeneration& generation)
      : matrix_(matrix), generation_(generation) {}

  NodeDesign build() {
    for (std::size_t i = 0; i < size(); ++i) {
      if (matrix_.is_gpu(i)) vertex_.push_back(add(VertexKind::gpu, "gpu"));
    }
    const std::size_t gpus = vertex_.size();
    for (std::size_t i = gpus; i < size(); ++i) vertex_.push_back(add(VertexKind::nic, "nic"));
    add_nvlinks(gpus);
    add_pcie();
    return std::move(design_);
  }

 private:
  [[nodiscard]] std::size_t size() const { return matrix_.names.size(); }

  VertexId add(VertexKind kind, const std::string& stem) {
    const auto count = std::ranges::count(design_.vertices, kind, &Vertex::kind);
    return design_.add(kind, stem + std::to_string(count));
  }

  /// More NVLinks than a GPU has, all peers counted: they are the same ones, and lead to switches,
  /// which stand as one.
  void add_nvlinks(std::size_t gpus) {
    int most = 0;
    std::vector<int> widest(gpus);
    for (std::size_t a = 0; a < gpus; ++a) {
      int sum = 0;
      for (std::size_t b = 0; b < gpus; ++b) {
        sum += matrix_.nvlinks(a, b);
        widest[a] = std::max(widest[a], matrix_.nvlinks(a, b));
      }
      most = std::max(most, sum);
    }
    const auto join = [&](VertexId a, VertexId b, int count) {
      if (count == 0) return;
      design_.join(a, b, LinkKind::nvlink, count, generation_.nvlink, parts::nvlink_latency);
    };
    if (most > generation_.nvlinks) {
      const VertexId nv_switch = add(VertexKind::nv_switch, "nvswitch");
      for (std::size_t a = 0; a < gpus; ++a) join(vertex_[a], nv_switch, widest[a]);
      return;
    }
    for (std::size_t a = 0; a < gpus; ++a) {
      for (std::size_t b = a + 1; b < gpus; ++b)
        join(vertex_[a], vertex_[b], matrix_.nvlinks(a, b));
    }
  }

  /// Devices at PIX hang on one switch, switches at PXB on another one, and all that are not at
  /// SYS, or have the same CPU affinity, on one processor.
  void add_pcie() {
    const auto cell = [this](std::size_t a, std::size_t b) { return matrix_.cells[a][b]; };
    const auto pix = groups(size(), [&](auto a, auto b) { return cell(a, b) == "PIX"; });
    const auto pxb =
        groups(size(), [&](auto a, auto b) { return cell(a, b) == "PIX" || cell(a, b) == "PXB"; });
    const auto processor = groups(size(), [&](auto a, auto b) {
      const bool known = matrix_.nvlinks(a, b) == 0;
      const bool same = !matrix_.affinity[a].empty() && matrix_.affinity[a] == matrix_.affinity[b];
      return same || (known && cell(a, b) != "SYS");
    });
    std::map<std::size_t, VertexId> processors;
    for (const std::size_t group : processor) {
      if (!processors.contains(group)) processors[group] = add(VertexKind::cpu, "cpu");
    }
    std::map<std::size_t, VertexId> outer;
    std::map<std::size_t, VertexId> inner;
    for (std::size_t i = 0; i < size(); ++i) {
      const VertexId cpu = processors.at(processor[i]);
      const VertexId root = switch_above(pxb, pxb[i], spans_several(pix, pxb, pxb[i]), outer, cpu);
      join_pcie(vertex_[i], switch_above(pix, pix[i], true, inner, root));
    }
    for (auto a = processors.begin(); a != processors.end(); ++a) {
      for (auto b = std::next(a); b != processors.end(); ++b) {
        design_.join(a->second, b->second, LinkKind::inter_socket, 1, generation_.sockets,
                     parts::socket_latency);
      }
    }
  }

  /// Whether a group at PXB is more than one group at PIX.
  static bool spans_several(const std::vector<std::size_t>& pix,
                            const std::vector<std::size_t>& pxb, std::size_t group) {
    for (std::size_t i = 0; i < pix.size(); ++i) {
      if (pxb[i] == group && pix[i] != pix[group]) return true;
    }
    return false;
  }

  /// The switch of a group, hung on `above` when it is first asked for; `above` itself for a device
  /// alone.
  VertexId switch_above(const std::vector<std::size_t>& groups_of, std::size_t group, bool wanted,
                        std::map<std::size_t, VertexId>& switches, VertexId above) {
    if (!wanted || std::ranges::count(groups_of, group) < 2) return above;
    if (const auto found = switches.find(group); found != switches.end()) return found->second;
    const VertexId own = add(VertexKind::pcie_switch, "pcie");
    switches[group] = own;
    join_pcie(own, above);
    return own;
  }

  void join_pcie(VertexId below, VertexId above) {
    design_.join(below, above, LinkKind::pcie, 1, generation_.pcie_x16, parts::pcie_latency);
  }

  const SmiMatrix& matrix_;
  const GpuGeneration& generation_;
  NodeDesign design_;
  std::vector<VertexId> vertex_;  ///< by device
};

const GpuGeneration& generation(const std::string& file, const Known& known) {
  if (const GpuGeneration* found = generation_of(known.gpu)) return *found;
  std::string names;
  for (const GpuGeneration& one : gpu_generations())
    names += (names.empty() ? "" : ", ") + one.name;
  throw InputError(
      file, "",
      "the GPU (--gpu), since a matrix does not say its rates: a name that begins with " + names,
      known.gpu.empty() ? "none" : '"' + known.gpu + '"');
}

}  // namespace

NodeFile import_smi_matrix(const std::string& text, const std::string& file, const Known& known) {
  const SmiMatrix matrix = parse_smi_matrix(text, file);
  const GpuGeneration& own = generation(file, known);
  NodeFile node{.design = Builder(matrix, own).build(), .port = {}, .source = ""};
  node.design.name = known.name;
  node.design.gpu = known.gpu;
  node.design.compute_capability = own.compute_capability;
  const bool has_nics =
      std::ranges::count(node.design.vertices, VertexKind::nic, &Vertex::kind) > 0;
  if (has_nics && known.port.empty()) {
    throw InputError(file, "", "the speed of the adapters (--port), since a matrix does not say it",
                     "none");
  }
  if (has_nics) node.port = network_speed(known.port);
  node.source = fmt::format(
      "nvidia-smi topo -m, {}; rates of NVLink and PCIe by GPU ({}); between sockets assumed as in "
      "the "
      "server of that GPU; latencies assumed",
      file, own.name);
  return node;
}

}  // namespace stratagem::topology::importers

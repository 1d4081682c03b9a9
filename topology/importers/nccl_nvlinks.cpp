// Counts NVLinks from both of their ends, then joins vertices.
#include "topology/importers/inside/nccl_nvlinks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topology/importers/gpu_generation.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology::importers {

using pugi::xml_node;

void NcclNvLinks::add(const Numbered& gpu, VertexId own, VertexId cpu,
                      const std::map<std::pair<int, std::string>, VertexId>& at_bus) {
  for (const xml_node link : gpu.element.children("nvlink")) {
    const std::string target = link.attribute("target").value();
    const std::string kind = link.attribute("tclass").value();
    const int count = file_.positive(link, "count", 1, most_links);
    const auto peer = at_bus.find({gpu.host, target});
    if (peer != at_bus.end()) {
      int& both = pairs_[std::minmax(own, peer->second)];
      both = std::max(both, count);  // each end says so
    } else if (kind.starts_with("0x068001")) {
      design_.join(own, cpu, LinkKind::c2c, count, rate(link), parts::nvlink_latency);
    } else if (kind.starts_with("0x0680")) {
      to_switches_[target][own] += count;
    } else if (!kind.starts_with("0x03")) {  // to a GPU that the job did not see
      file_.refuse(link, "an NVLink to a GPU of the file or to an NVSwitch", '"' + target + '"');
    }
  }
  for (const xml_node link : gpu.element.children("c2c")) {  // "bw" of one link in MB/s
    design_.join(own, cpu, LinkKind::c2c, file_.positive(link, "count", 1, most_links),
                 file_.positive(link, "bw", {}, most_rate) * (1_GBps / 1000.0),
                 parts::nvlink_latency);
  }
}

BytesPerSecond NcclNvLinks::rate(const xml_node& where) const {
  const BytesPerSecond rate = nvlink_of(design_.compute_capability);
  if (rate <= BytesPerSecond{}) {
    file_.refuse(where, "GPUs whose NVLinks we know",
                 fmt::format("sm=\"{}\"", design_.compute_capability));
  }
  return rate;
}

/// Switches that not all GPUs reach stand as one, as NCCL has them: how they are joined is not
/// said.
void NcclNvLinks::finish(const xml_node& first) {
  const auto join = [&](VertexId from, VertexId to, int count) {
    design_.join(from, to, LinkKind::nvlink, count, rate(first), parts::nvlink_latency);
  };
  for (const auto& [pair, count] : pairs_) join(pair.first, pair.second, count);
  std::map<VertexId, int> together;
  for (const auto& [target, ends] : to_switches_) {
    for (const auto& [gpu, count] : ends) together[gpu] += count;
  }
  const bool all = std::ranges::all_of(
      to_switches_, [&](const auto& one) { return one.second.size() == together.size(); });
  if (!all) to_switches_ = {{"", together}};
  int number = 0;
  for (const auto& [target, ends] : to_switches_) {
    const VertexId middle =
        design_.add(VertexKind::nv_switch, "nvswitch" + std::to_string(number++));
    for (const auto& [gpu, count] : ends) join(gpu, middle, count);
  }
}

}  // namespace stratagem::topology::importers

// Scales constants of a profile, or links of a cluster.
#include "study/what_if.hpp"

#include <fmt/format.h>

#include <utility>

#include "topology/measured_collectives.hpp"

namespace stratagem::study {
namespace {

template <typename T>
void scale(cost::Constant<T>& constant, double factor) {
  constant = {factor * constant.value, cost::Provenance::assumed, "what_if", constant.error};
}

template <typename Scaled>
void scale_links(Run& run, double factor, const Scaled& scaled) {
  topology::NodeDesign design = run.cluster.design();
  for (topology::Link& link : design.links) {
    if (!scaled(link.kind)) continue;
    link.bandwidth = factor * link.bandwidth;
    if (link.back) link.back = factor * *link.back;
  }
  run.cluster =
      topology::Cluster(std::move(design), run.cluster.nodes(), run.cluster.fabric().design());
}

void scale_products(Run& run, double factor) {
  for (auto& [type, peak] : run.profile.peak) scale(peak, factor);
}

/// A rank on a processor also sends through its memory.
void scale_memory_bandwidth(Run& run, double factor) {
  scale(run.profile.memory.bandwidth, factor);
  if (run.cluster.design().on_processors())
    scale_links(run, factor, [](auto kind) { return kind == topology::LinkKind::memory; });
}

void scale_memory(Run& run, double factor) { scale(run.profile.memory.size, factor); }

/// A drive's link is as fast as the drive.
void scale_links(Run& run, double factor) {
  using topology::LinkKind;
  scale_links(run, factor,
              [](auto kind) { return kind != LinkKind::memory && kind != LinkKind::drive; });
}

void scale_network(Run& run, double factor) {
  topology::FabricDesign fabric = run.cluster.fabric().design();
  fabric.speed.port = factor * fabric.speed.port;
  topology::NodeDesign design = run.cluster.design();
  for (const topology::MeasuredKind& kind : topology::measured_kinds) {
    for (topology::MeasuredCollective& one : design.measured.*kind.list)
      one.bus_bandwidth = factor * one.bus_bandwidth;
  }
  run.cluster = topology::Cluster(std::move(design), run.cluster.nodes(), std::move(fabric));
}

void scale_launches(Run& run, double factor) { scale(run.profile.launch, 1 / factor); }

}  // namespace

const std::vector<Resource>& resources() {
  static const std::vector<Resource> all = {
      {"products", "the peak of matrix products and fused attention", &scale_products},
      {"memory_bandwidth", "the bandwidth of memory", &scale_memory_bandwidth},
      {"memory", "the size of memory", &scale_memory, false},
      {"links", "the bandwidth of links within servers", &scale_links},
      {"network", "the bandwidth of the network", &scale_network},
      {"launches", "the pace of launches", &scale_launches}};
  return all;
}

Factors read_what_if(const JsonReader& json) {
  Factors factors;
  for (const Resource& resource : resources()) {
    const auto factor = json.find(resource.name);
    if (!factor) continue;
    factors.emplace_back(&resource, factor->number());
    constexpr double most = 1e6;
    if (!(factors.back().second >= 1 / most && factors.back().second <= most))
      factor->fail("a factor from 1e-6 to 1e6");
  }
  return factors;
}

void suppose(Run& run, const Factors& factors) {
  std::string text;
  for (const auto& [resource, factor] : factors) {
    if (factor == 1) continue;
    resource->times(run, factor);
    text += fmt::format("{}{} times {}", text.empty() ? "" : "; ", factor, resource->words);
  }
  if (text.empty()) return;
  if (!run.compared.measured.empty()) text += "; what was measured on the real machine is left out";
  run.compared.measured.clear();
  run.compared.remarks.push_back(text);
}

}  // namespace stratagem::study

// Goes through the constants of a profile and a stack, leaving out those that a program does not
// use.
#include "study/provenance.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <variant>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "cost/speed_spread.hpp"

namespace stratagem::study {
namespace {

/// Which groups of constants a program needs, as beginnings of their JSON pointers.
class Needs {
 public:
  Needs(const program::Program& program, const cost::Profile& profile, const cost::Stack& stack,
        int gpus_per_node)
      : nccl_(!stack.nccl.empty()),
        processor_(profile.of_processor()),
        times_(processor_ && !profile.collective.times.empty()),
        gpus_(program.devices.size()) {
    for (const auto& [kind, shares] : profile.kernels.by_pass) passes_.insert(kind);
    const cost::Attentions& attentions = profile.kernels.attention;
    const auto chosen = cost::chosen_attention(attentions, cost::preferred_attention(stack));
    if (chosen != attentions.end()) attention_ = chosen->first;
    for (const program::Block& block : program.blocks) {
      for (const program::Task& task : block.tasks) {
        if (const auto* kernel = std::get_if<cost::Kernel>(&task.work)) add(*kernel);
        const auto* one = std::get_if<program::Collective>(&task.work);
        const auto crosses = [&](const program::Device& device) {
          return program::crosses_links(program, device, *one);
        };
        if (one != nullptr && std::ranges::any_of(program.devices, crosses)) add(*one, task.stream);
      }
    }
    for (const program::Communicator& group : program.communicators) {
      if (group.ranks.size() < 2) continue;
      used_.insert("/collective/");
      used_.insert("/communicator/");
      const auto [first, last] = std::ranges::minmax(group.ranks);
      const bool crosses = first / gpus_per_node != last / gpus_per_node;
      if (crosses) used_.insert("/collective/network_");
      if (processor_ && (crosses || !times_)) used_.insert(pcie);  // between sockets
    }
  }

  [[nodiscard]] bool include(const std::string& path) const {
    if (path.starts_with("/collective/nccl/") && !nccl_) return false;
    if (path == "/collective/nvlink_efficiency" && processor_) return false;
    // Where times were measured only groups of several servers need the formula.
    for (const std::string_view closed_form :
         {"/collective/base", "/collective/node_step", "/collective/memory_efficiency"}) {
      if (times_ && path == closed_form) return used_.contains("/collective/network_");
    }
    if (path.starts_with("/collective/times/")) return used_.contains(path);
    // NCCL's model brings its own times.
    for (const std::string_view closed_form :
         {"/collective/base", "/collective/node_step", "/collective/network_step",
          "/collective/node_link_latency", "/collective/network_link_latency"}) {
      if (nccl_ && path == closed_form) return false;
    }
    // Adapters stand behind PCIe, so its share matters where the network's does.
    if (path.starts_with("/collective/network_")) return used_.contains("/collective/network_");
    for (const std::string_view own : {compute_slowdown, speed_spread})
      if (path == own) return used_.contains(path);
    if (path == "/collective/pcie_efficiency")
      return used_.contains("/collective/network_") || used_.contains(pcie);
    if (path.find("/unaligned/") != std::string::npos) return used_.contains(path + "/");
    for (const std::string_view group :
         {"/gemm/", "/attention/", "/peak/", "/streaming/", "/streaming_by_pass/", "/collective/",
          "/communicator/", "/host_copy/", "/host_memory_bandwidth"}) {
      if (!path.starts_with(group)) continue;
      return std::ranges::any_of(
          used_, [&](const std::string& used) { return (path + "/").starts_with(used); });
    }
    return true;
  }

 private:
  static constexpr const char* pcie = "/collective/pcie_efficiency";
  static constexpr const char* compute_slowdown = "/collective/compute_slowdown";
  static constexpr const char* speed_spread = "/speed_spread";

  /// Copies to the host use what they share with NCCL, and the fixed time of a copy. Other
  /// collectives can slow kernels down unless they stand in one queue with them.
  void add(const program::Collective& one, program::Stream stream) {
    if (!cost::concerns_host(one.kind)) {
      if (stream != program::Stream::compute && cost::takes_multiprocessors(one.kind))
        used_.insert(compute_slowdown);
      used_.insert("/collective/times/" + cost::to_text(cost::timed_as(one.kind)));
      return;
    }
    used_.insert(pcie);
    if (cost::concerns_drives(one.kind)) return;
    used_.insert("/host_copy/latency");
    used_.insert("/host_copy/link_latency");
  }

  void add(const cost::Kernel& kernel) {
    if (gpus_ > 1 && cost::runs_at_its_clock(kernel.kind)) used_.insert(speed_spread);
    if (kernel.kind == cost::KernelKind::gemm) {
      used_.insert("/gemm/" + model::to_text(kernel.type) + "/");
      used_.insert("/gemm/" + model::to_text(kernel.type) + "/unaligned/" +
                   std::to_string(kernel.alignment) + "/");
      used_.insert("/peak/" + model::to_text(kernel.type) + "/");
    } else if (cost::is_attention(kernel.kind)) {
      used_.insert("/attention/" + attention_ + "/");
      used_.insert("/streaming/elementwise/");
      used_.insert("/peak/" + model::to_text(kernel.type) + "/");
    } else if (kernel.kind == cost::KernelKind::host_copy) {
      used_.insert("/host_copy/");
    } else if (kernel.kind == cost::KernelKind::host_optimizer) {
      used_.insert("/host_memory_bandwidth");
    } else {
      const std::string kind = cost::to_text(kernel.kind);
      const bool by_pass = kernel.pass != cost::KernelPass::either && passes_.contains(kind);
      used_.insert((by_pass ? "/streaming_by_pass/" : "/streaming/") + kind + "/");
    }
  }

  std::set<std::string> passes_;  ///< kinds with constants of each pass
  std::string attention_;         ///< the implementation of fused attention that runs
  bool nccl_;
  bool processor_;
  bool times_;  ///< of ranks on processors, in place of a formula
  std::size_t gpus_;
  std::set<std::string> used_;
};

struct Found {
  std::string path;
  cost::Provenance provenance;
};

/// Every object below with a "provenance" is a constant.
void collect(const JsonReader& json, std::vector<Found>& found) {
  if (!json.is_object()) return;
  if (const auto word = json.find("provenance")) {
    found.push_back({json.path(), cost::read_provenance(*word)});
    return;
  }
  for (const std::string& key : json.keys()) collect(json.at(key), found);
}

std::vector<Found> constants(const Json& json) {
  std::vector<Found> found;
  collect(JsonReader::from_text(json.text(), ""), found);
  return found;
}

std::vector<std::string> paths_of(const std::vector<Found>& found, cost::Provenance provenance) {
  std::vector<std::string> paths;
  for (const Found& constant : found) {
    if (constant.provenance == provenance) paths.push_back(constant.path);
  }
  return paths;
}

}  // namespace

Weakest weakest_provenance(const cost::Profile& profile, const cost::Stack& stack,
                           const program::Program& program, int gpus_per_node) {
  const Needs needs(program, profile, stack, gpus_per_node);
  std::vector<Found> hardware = constants(cost::to_json(profile));
  std::erase_if(hardware, [&](const Found& constant) { return !needs.include(constant.path); });
  Json facts = Json::object();
  facts.set("slowdown", cost::to_json(stack.slowdown))
      .set("host_factor", cost::to_json(stack.host_factor));
  if (stack.product_slowdown) facts.set("product_slowdown", cost::to_json(*stack.product_slowdown));
  if (stack.memory.workspace)
    facts.set("memory", Json::object().set("workspace", cost::to_json(*stack.memory.workspace)));
  const std::vector<Found> software = constants(facts);
  Weakest weakest;
  for (const std::vector<Found>& found : {hardware, software}) {
    for (const Found& constant : found) {
      weakest.provenance = std::max(weakest.provenance, constant.provenance);
    }
  }
  weakest.profile = paths_of(hardware, weakest.provenance);
  weakest.stack = paths_of(software, weakest.provenance);
  return weakest;
}

void include_drives(Weakest& weakest, const topology::Drives& drives,
                    const program::Program& program) {
  const bool used = std::ranges::any_of(program.blocks, [](const program::Block& block) {
    return std::ranges::any_of(block.tasks, [](const program::Task& task) {
      const auto* one = std::get_if<program::Collective>(&task.work);
      return one != nullptr && cost::concerns_drives(one->kind);
    });
  });
  if (!used) return;
  const auto known = std::ranges::find(cost::provenances, drives.provenance,
                                       [](cost::Provenance one) { return cost::to_text(one); });
  const cost::Provenance of = known == cost::provenances.end() ? cost::Provenance::assumed : *known;
  if (of < weakest.provenance) return;
  if (of > weakest.provenance) weakest = {.provenance = of, .profile = {}, .stack = {}};
  weakest.cluster = {"/drives"};
}

}  // namespace stratagem::study

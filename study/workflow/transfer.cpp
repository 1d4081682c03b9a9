// Finds who sends what to whom, and simulates the messages.
#include "study/workflow/transfer.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "sim/folding/folding.hpp"
#include "sim/price.hpp"
#include "sim/steady.hpp"

namespace stratagem::study {
namespace {

using placement::Mask;
using program::Stream;

double elements_of(const Mask& mask) {
  double elements = 1;
  for (const placement::Range& range : mask.ranges)
    elements *= static_cast<double>(range.end - range.begin);
  return elements;
}

/// The elements that two masks share.
double shared(const Mask& one, const Mask& other) {
  double elements = 1;
  for (std::size_t d = 0; d < one.ranges.size(); ++d) {
    const std::int64_t begin = std::max(one.ranges[d].begin, other.ranges[d].begin);
    const std::int64_t end = std::min(one.ranges[d].end, other.ranges[d].end);
    elements *= static_cast<double>(std::max<std::int64_t>(0, end - begin));
  }
  return elements;
}

/// Bytes from one GPU of a cluster to another.
using Messages = std::map<std::pair<int, int>, Bytes>;

/// The GPUs that hold one part of a parameter, all of it or a share each.
struct Owners {
  std::vector<int> gpus;
  bool in_shares = false;
};

class Transfer {
 public:
  /// The GPUs of `to` begin at `offset` of the cluster.
  Transfer(const ModelStates& from, const ModelStates& to, int offset, int gpus_per_node)
      : to_(to), offset_(offset), gpus_per_node_(gpus_per_node) {
    for (std::size_t gpu = 0; gpu < from.parameters.size(); ++gpu) {
      for (const auto& [name, part] : from.parameters[gpu]) {
        Owners& holders = parts_[name][part.mask];
        holders.gpus.push_back(static_cast<int>(gpu));
        holders.in_shares = holders.in_shares || part.share < 1;
      }
    }
  }

  Messages messages() {
    for (std::size_t gpu = 0; gpu < to_.parameters.size(); ++gpu) {
      for (const auto& [name, wanted] : to_.parameters[gpu]) {
        const auto found = parts_.find(name);
        if (found == parts_.end()) continue;  // a parameter of this head alone
        for (const auto& [mask, holders] : found->second)
          fetch(offset_ + static_cast<int>(gpu), wanted, shared(mask, wanted.mask), holders);
      }
    }
    return std::move(messages_);
  }

 private:
  void fetch(int gpu, const ParameterPart& wanted, double elements, const Owners& holders) {
    const Bytes bytes = elements / elements_of(wanted.mask) * wanted.bytes;
    if (!holders.in_shares) {
      const int source = source_of(gpu, holders.gpus);
      if (source != gpu && bytes > Bytes{}) messages_[{source, gpu}] += bytes;
      return;
    }
    for (const int source : holders.gpus) {
      const Bytes share = bytes / static_cast<double>(holders.gpus.size());
      if (source != gpu && share > Bytes{}) messages_[{source, gpu}] += share;
    }
  }

  /// The GPU itself, else one of its server, else any: in turn, so that none sends to all.
  [[nodiscard]] int source_of(int gpu, const std::vector<int>& holders) const {
    if (std::ranges::count(holders, gpu) > 0) return gpu;
    std::vector<int> near;
    for (const int holder : holders)
      if (holder / gpus_per_node_ == gpu / gpus_per_node_) near.push_back(holder);
    const std::vector<int>& some = near.empty() ? holders : near;
    return some[static_cast<std::size_t>(gpu) % some.size()];
  }

  const ModelStates& to_;
  int offset_;
  int gpus_per_node_;
  std::map<std::string, std::map<Mask, Owners>> parts_;  ///< by parameter
  Messages messages_;
};

/// Every GPU sends and receives all of its messages at once.
program::Program program_of(const Messages& messages, int gpus) {
  program::Program program;
  std::vector<program::Block> blocks(gpus);
  program.devices.resize(gpus);
  const auto add = [&](int gpu, Bytes bytes, Stream stream) {
    std::vector<int>& groups = program.devices[gpu].groups;
    groups.push_back(static_cast<int>(program.communicators.size()) - 1);
    blocks[gpu].tasks.push_back(
        {.name = "weights",
         .work = program::Collective{.kind = cost::CollectiveKind::send,
                                     .group = static_cast<int>(groups.size()) - 1,
                                     .payload = bytes},
         .stream = stream});
  };
  for (const auto& [pair, bytes] : messages) {
    program.communicators.push_back({.ranks = {pair.first, pair.second}});
    add(pair.first, bytes, Stream::send_forward);
    add(pair.second, bytes, Stream::receive_forward);
  }
  for (int gpu = 0; gpu < gpus; ++gpu) {
    program.devices[gpu].sequence = gpu;
    program.blocks.push_back(std::move(blocks[gpu]));
    program.sequences.push_back({.calls = {{.block = gpu, .segment = -1}}, .residents = {}});
  }
  return program;
}

/// The servers of both pools, those of `to` behind those of `from`.
topology::Cluster together(const Run& from, const Run& to) {
  const topology::Cluster &one = from.cluster, &other = to.cluster;
  if (one.design().name != other.design().name) {
    throw InputError(to.origin.file, to.origin.path + "/cluster",
                     "servers as in the pool that new weights come from, " + one.design().name,
                     other.design().name);
  }
  return {one.design(), one.nodes() + other.nodes(), one.fabric().design()};
}

}  // namespace

Seconds transfer_time(const TransferSide& from, const TransferSide& to, bool same_gpus) {
  const topology::Cluster cluster = same_gpus ? from.run.cluster : together(from.run, to.run);
  const int offset = same_gpus ? 0 : from.run.cluster.gpus();
  const Messages messages =
      Transfer(from.states, to.states, offset, cluster.gpus_per_node()).messages();
  if (messages.empty()) return {};
  const program::Program program = program_of(messages, offset + to.run.gpus);
  const cost::Profile& profile = from.run.profile;
  cost::Collectives collectives(cluster, profile.collective, from.run.stack.nccl);
  sim::Folding folding = sim::fold(program, collectives, true);
  folding.launch_queue = cost::launch_queue_of(profile);
  const sim::Prices prices =
      sim::price(program, profile, from.run.stack, cluster.gpus_per_node(), {});
  const sim::Timeline timeline = sim::run_until_steady(program, folding, prices);
  return to_seconds(timeline.iteration_ends.front() - sim::Instant{0});
}

}  // namespace stratagem::study

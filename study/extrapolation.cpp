// Compares the size of every kernel and collective of a program with the measured ranges.
#include "study/extrapolation.hpp"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "cost/measured_times.hpp"

namespace stratagem::study {
namespace {

std::string kind_of(const cost::Kernel& kernel) {
  std::string kind = cost::to_text(kernel.kind);
  if (kernel.kind == cost::KernelKind::gemm) kind += " " + model::to_text(kernel.type);
  return kind;
}

bool measured(const cost::Kernel& kernel, const cost::Profile& profile) {
  const auto found = profile.evidence.find(kind_of(kernel));
  if (found == profile.evidence.end()) return false;
  const cost::Evidence& evidence = found->second;
  const int launches = std::max(kernel.launches, 1);
  if (cost::is_attention(kernel.kind)) return evidence.size.holds(static_cast<double>(kernel.n));
  if (kernel.kind != cost::KernelKind::gemm)
    return evidence.size.holds(kernel.traffic.value / launches);
  const auto smallest = static_cast<double>(std::min({kernel.m, kernel.n, kernel.k}));
  return evidence.size.holds(kernel.piece.of * kernel.flops.value) &&
         (!evidence.smallest || evidence.smallest->holds(smallest));
}

/// What matters of a communicator here.
struct Group {
  int ranks = 0;
  bool on_one_server = false;
};

std::vector<Group> groups_of(const program::Program& program, int gpus_per_node) {
  std::vector<Group> groups;
  for (const program::Communicator& one : program.communicators) {
    const auto [first, last] = std::ranges::minmax(one.ranks);
    groups.push_back(
        {static_cast<int>(one.ranks.size()), first / gpus_per_node == last / gpus_per_node});
  }
  return groups;
}

bool measured(const program::Collective& one, const Group& group, const cost::Profile& profile,
              const cost::Stack& stack) {
  if (!group.on_one_server) return false;
  if (profile.of_processor()) {
    const auto times = profile.collective.times.find(cost::to_text(one.kind));
    return times != profile.collective.times.end() &&
           cost::within_measured(times->second, group.ranks, one.payload);
  }
  if (one.kind != cost::CollectiveKind::all_reduce) return false;
  const auto found = profile.evidence.find(stack.nccl.empty() ? "all_reduce" : "nccl all_reduce");
  if (found == profile.evidence.end()) return false;
  const cost::Evidence& evidence = found->second;
  return evidence.size.holds(one.payload.value) &&
         (!evidence.ranks || evidence.ranks->holds(group.ranks));
}

/// Sums over the tasks of all devices.
class Sums {
 public:
  Sums(const cost::Profile& profile, const cost::Stack& stack) : profile_(profile), stack_(stack) {}

  void add(const cost::Kernel& kernel, double times) {
    const double seconds = times * cost::kernel_time(kernel, profile_, stack_).value;
    seconds_ += seconds;
    if (cost::is_frameworks_own(kernel.kind)) streaming_ += seconds;
    if (kernel.kind == cost::KernelKind::gemm || cost::is_attention(kernel.kind))
      products_ += seconds;
    if (!measured(kernel, profile_)) beyond_[kind_of(kernel)] += seconds;
    if (kernel.alignment == 0) return;
    cost::Kernel aligned = kernel;
    aligned.alignment = 0;
    unaligned_ += seconds - times * cost::kernel_time(aligned, profile_, stack_).value;
  }

  void add(const program::Collective& one, const Group& group, double times) {
    if (cost::concerns_host(one.kind)) return;
    const double bytes = times * one.payload.value;
    bytes_ += bytes;
    if (!measured(one, group, profile_, stack_)) bytes_beyond_ += bytes;
  }

  [[nodiscard]] Extrapolated shares() const {
    Extrapolated shares;
    for (const auto& [kind, seconds] : beyond_) {
      shares.by_kind[kind] = seconds / seconds_;
      shares.kernel_time += seconds / seconds_;
    }
    if (bytes_ > 0) shares.bytes = bytes_beyond_ / bytes_;
    if (seconds_ > 0) shares.unaligned = unaligned_ / seconds_;
    if (products_ > 0) shares.products = products_ / (products_ + streaming_);
    return shares;
  }

 private:
  const cost::Profile& profile_;
  const cost::Stack& stack_;
  double seconds_ = 0;
  double bytes_ = 0;
  double bytes_beyond_ = 0;
  double unaligned_ = 0;
  double products_ = 0, streaming_ = 0;
  std::map<std::string, double> beyond_;
};

}  // namespace

Extrapolated extrapolated(const cost::Profile& profile, const cost::Stack& stack,
                          const program::Program& program, int gpus_per_node) {
  Sums sums(profile, stack);
  const std::vector<Group> groups = groups_of(program, gpus_per_node);
  // Equal blocks once: how often each is called, by sequence.
  std::vector<std::vector<double>> calls(program.sequences.size(),
                                         std::vector<double>(program.blocks.size()));
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    for (const program::Call& call : program.sequences[s].calls) calls[s][call.block] += 1;
  }
  std::vector<double> times(program.blocks.size());
  for (const program::Device& device : program.devices) {
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      const double count = calls[device.sequence][b];
      times[b] += count;
      if (count == 0) continue;
      for (const program::Task& task : program.blocks[b].tasks) {
        const auto* one = std::get_if<program::Collective>(&task.work);
        if (one == nullptr || !program::crosses_links(program, device, *one)) continue;
        sums.add(*one, groups[device.groups[one->group]], count);
      }
    }
  }
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    for (const program::Task& task : program.blocks[b].tasks) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      if (kernel != nullptr && times[b] > 0) sums.add(*kernel, times[b]);
    }
  }
  return sums.shares();
}

}  // namespace stratagem::study

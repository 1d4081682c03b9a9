// Counts what programs ask for.
#include "program/program.hpp"

#include <algorithm>
#include <numeric>

namespace stratagem::program {

std::size_t task_count(const Program& program, const Sequence& sequence) {
  std::size_t count = 0;
  for (const Call& call : sequence.calls) count += program.blocks[call.block].tasks.size();
  return count;
}

std::vector<HostWait> host_waits_before(const Call& call, int task) {
  std::vector<HostWait> waits;
  for (const int before : {-1, task}) {
    const auto [first, last] =
        std::ranges::equal_range(call.host_waits, before, {}, &HostWait::before);
    waits.insert(waits.end(), first, last);
  }
  return waits;
}

std::vector<Launch> launch_order(const Program& program, const Sequence& sequence) {
  if (!sequence.launches.empty()) return sequence.launches;
  std::vector<Launch> whole;
  for (std::size_t call = 0; call < sequence.calls.size(); ++call) {
    const std::size_t tasks = program.blocks[sequence.calls[call].block].tasks.size();
    if (tasks > 0) whole.push_back({static_cast<int>(call), 0, static_cast<int>(tasks)});
  }
  return whole;
}

std::vector<int> first_beside(const Sequence& sequence) {
  std::vector<int> first(sequence.calls.size());
  std::iota(first.begin(), first.end(), 0);
  int latest = 0;
  for (const Launch& launch : sequence.launches) {
    for (int call = launch.call; call < latest; ++call) first[call + 1] = first[launch.call];
    latest = std::max(latest, launch.call);
  }
  return first;
}

Flops hardware_flops(const Program& program) {
  std::vector<Flops> blocks(program.blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (const Task& task : program.blocks[b].tasks) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      if (kernel != nullptr) blocks[b] += kernel->flops;
    }
  }
  std::vector<Flops> sequences(program.sequences.size());
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (const Call& call : program.sequences[s].calls) sequences[s] += blocks[call.block];
  }
  Flops total;
  for (const Device& device : program.devices) total += sequences[device.sequence];
  return total;
}

bool crosses_links(const Program& program, const Device& device, const Collective& collective) {
  if (cost::concerns_host(collective.kind)) return true;
  const bool known = collective.group < static_cast<int>(device.groups.size());
  const int group = known ? device.groups[collective.group] : -1;
  return group >= 0 && program.communicators[group].ranks.size() > 1;
}

}  // namespace stratagem::program

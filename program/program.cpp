// Counts what programs ask for.
#include "program/program.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stratagem::program {

std::size_t task_count(const Program& program, const Sequence& sequence) {
  std::size_t count = 0;
  for (std::size_t c = 0; c < sequence.calls.size(); ++c)
    count += program.blocks[sequence.calls.body(c).block].tasks.size();
  return count;
}

std::vector<HostWait> host_waits_before(const Call& call, int task) {
  std::vector<HostWait> waits;
  for (const HostWait& wait : call.host_waits) {
    if (is_before(wait, task)) waits.push_back(wait);
  }
  return waits;
}

std::vector<int> first_beside(const Sequence& sequence) {
  const Calls& calls = sequence.calls;
  std::vector<int> first(calls.stored().size());  // of stored calls
  std::iota(first.begin(), first.end(), 0);
  int latest = 0;
  for (const Launch& launch : sequence.launches) {
    for (int call = launch.call; call < latest; ++call) first[call + 1] = first[launch.call];
    latest = std::max(latest, launch.call);
  }
  std::vector<int> result;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const Calls::Place place = calls.place(c);
    result.push_back(calls.number({first[place.stored], place.turn}));
  }
  return result;
}

Sequence unrolled(const Sequence& sequence) {
  std::vector<StoredCall> all;
  for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
    const Call call = sequence.calls[c];
    all.push_back(sequence.calls.body(c));
    all.back().cell = call.cell;
    all.back().waits.assign(call.waits.begin(), call.waits.end());
    all.back().host_waits.assign(call.host_waits.begin(), call.host_waits.end());
  }
  Sequence result{.calls = {std::move(all)}, .residents = sequence.residents};
  if (sequence.launches.empty()) return result;
  const Program none;  // launches are given
  each_launch(none, sequence, [&](const Launch& one) { result.launches.push_back(one); });
  return result;
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

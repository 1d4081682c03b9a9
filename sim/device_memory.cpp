// Live tensors, the allocator around them, and what stands beside it.
#include "sim/device_memory.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/input_error.hpp"
#include "sim/caching_allocator.hpp"
#include "sim/replay.hpp"

namespace stratagem::sim {
namespace {

using program::Program;

std::int64_t whole(Bytes bytes) { return static_cast<std::int64_t>(std::ceil(bytes.value)); }

/// The distinct groups of devices that a device communicates in, with how many others it does so
/// with at once: as many as a ring or tree has it, or all of an all-to-all.
std::map<std::vector<int>, int> peers_by_group(const Program& program,
                                               const program::Device& device) {
  using cost::CollectiveKind;
  std::map<std::vector<int>, int> peers;
  std::vector<bool> seen(program.blocks.size(), false);
  for (const program::StoredCall& call : program.sequences[device.sequence].calls.stored()) {
    if (seen[call.block]) continue;
    seen[call.block] = true;
    for (const program::Task& task : program.blocks[call.block].tasks) {
      const auto* one = std::get_if<program::Collective>(&task.work);
      if (one == nullptr || cost::concerns_host(one->kind)) continue;
      const int group = device.groups[one->group];
      if (group < 0) continue;
      std::vector<int> ranks = program.communicators[group].ranks;
      std::ranges::sort(ranks);
      const int others = static_cast<int>(ranks.size()) - 1;
      if (others < 1) continue;
      const int with = one->kind == CollectiveKind::all_to_all ? others : std::min(others, 2);
      int& most = peers[std::move(ranks)];
      most = std::max(most, with);
    }
  }
  return peers;
}

void add_communicators(DeviceMemory& device, const Program& program, const cost::Profile& profile,
                       const std::vector<int>& beside) {
  std::vector<int> peers_of;
  for (const auto& [ranks, peers] : peers_by_group(program, program.devices[device.device]))
    peers_of.push_back(peers);
  for (const int size : beside) {
    if (size > 1) peers_of.push_back(std::min(size - 1, 2));
  }
  device.communicator_count = static_cast<int>(peers_of.size());
  if (!profile.memory.communicator) return;
  for (const int peers : peers_of) {
    device.communicators +=
        profile.memory.communicator->fixed.value + peers * profile.memory.communicator->peer.value;
  }
}

void allocate_residents(CachingAllocator& allocator, const program::Sequence& sequence) {
  std::vector<program::Resident> residents = sequence.residents;
  std::ranges::stable_sort(residents, {}, &program::Resident::category);
  for (const program::Resident& resident : residents) {
    if (resident.place != program::Residence::device || resident.span) continue;
    if (whole(resident.bytes) > 0) allocator.allocate(whole(resident.bytes));
  }
}

/// What the stack's allocator takes for a device that is complete but for that.
void reserve(DeviceMemory& device, const Program& program, const Timeline& timeline,
             std::size_t actor, const std::vector<MemoryChange>& changes,
             const cost::Profile& profile, const cost::Stack& stack) {
  using Allocator = cost::MemoryFacts::Allocator;
  device.reserved = device.allocated;
  if (stack.memory.allocator == Allocator::none) return;
  CachingAllocator allocator(whole(profile.memory.size.value) - whole(device.outside()),
                             stack.memory.allocator == Allocator::expandable);
  allocate_residents(allocator, program.sequences[timeline.actors[actor].sequence]);
  if (device.workspace_allocated && device.workspace > Bytes{})
    allocator.allocate(whole(device.workspace));
  replay(allocator, timeline, actor, changes);
  // No less than what is live: streams that run at once in time may be in turn for the host.
  device.reserved =
      std::max(device.allocated, Bytes{static_cast<double>(allocator.peak_reserved())});
  device.releases = allocator.releases();
}

/// The cell of a call, of a later turn where the timeline leaves out earlier ones.
placement::Cell cell_in_full(const Program& program, const Timeline& timeline, int sequence,
                             int number, Instant when) {
  const program::Calls& played = timeline.played.sequences[sequence].calls;
  program::Calls::Place place = played.place(number);
  const program::Loop* loop = played.loop_of(place.stored);
  if (!timeline.left_out.empty() && loop != nullptr && when > timeline.left_out.front().to) {
    const auto& [long_loop, lacking] = timeline.played.long_loops[sequence];
    if (loop == &played.loops()[long_loop]) place.turn += lacking;
  }
  const program::Calls& calls = program.sequences[sequence].calls;
  return calls[calls.number(place)].cell;
}

/// The task that allocated the last of a peak. Segments that are alike share a block, which is
/// named for the first of them: the call knows which one it is.
std::string task_named(const Program& program, const Timeline& timeline, int sequence,
                       const MemoryPeak& peak, const std::vector<std::string>& segments) {
  if (peak.task < 0) return "";
  const FlatTasks& tasks = timeline.tasks[sequence];
  const FlatTask& flat = tasks[static_cast<std::size_t>(peak.task) % tasks.size()];
  const program::Call& call = timeline.played.sequences[sequence].calls[flat.call];
  const program::Block& block = program.blocks[call.block];
  const bool known = call.segment >= 0 && call.segment < static_cast<int>(segments.size());
  return block.tasks[flat.task].name + " of " + (known ? segments[call.segment] : block.name) +
         " in " + to_text(cell_in_full(program, timeline, sequence, flat.call, peak.when));
}

DeviceMemory memory_of_actor(const Program& program, const Timeline& timeline, std::size_t a,
                             const cost::Profile& profile, const cost::Stack& stack,
                             const std::vector<std::string>& segments,
                             const std::vector<int>& groups_beside) {
  const Actor& actor = timeline.actors[a];
  const std::vector<MemoryChange> changes = changes_by_task(program, timeline, a);
  DeviceMemory device = memory_beside(program, actor.device, profile, stack, groups_beside);
  device.count = actor.multiplicity;
  device.sequences = {actor.sequence};
  device.peak = memory_peak(program, timeline, a, changes);
  device.at = task_named(program, timeline, actor.sequence, device.peak, segments);
  device.peak.when = timeline.in_full(device.peak.when);
  const Bytes within = device.workspace_allocated ? device.workspace : Bytes{};
  for (const Bytes bytes : residents(program, actor.sequence, program::Residence::device))
    device.resident += bytes;
  for (const program::Resident& one : program.sequences[actor.sequence].residents) {
    if (one.until_next && one.place == program::Residence::device) device.resident += one.bytes;
  }
  device.resident += within;
  device.allocated = device.peak.total + within;
  reserve(device, program, timeline, a, changes, profile, stack);
  return device;
}

}  // namespace

DeviceMemory memory_beside(const Program& program, int device, const cost::Profile& profile,
                           const cost::Stack& stack, const std::vector<int>& groups_beside) {
  DeviceMemory memory;
  memory.device = device;
  memory.context = profile.memory.context.value;
  add_communicators(memory, program, profile, groups_beside);
  if (stack.memory.workspace) memory.workspace = stack.memory.workspace->value;
  memory.workspace_allocated = stack.memory.workspace_allocated;
  return memory;
}

Bytes DeviceMemory::outside() const {
  return context + communicators + (workspace_allocated ? Bytes{} : workspace);
}

std::vector<DeviceMemory> device_memory(const Program& program, const Timeline& timeline,
                                        const cost::Profile& profile, const cost::Stack& stack,
                                        const std::vector<std::string>& segments,
                                        const std::vector<int>& groups_beside) {
  std::vector<DeviceMemory> distinct;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a) {
    DeviceMemory device =
        memory_of_actor(program, timeline, a, profile, stack, segments, groups_beside);
    const auto alike = std::ranges::find_if(distinct, [&](DeviceMemory other) {
      other.device = device.device;
      other.count = device.count;
      other.sequences = device.sequences;
      return other == device;
    });
    if (alike == distinct.end()) {
      distinct.push_back(std::move(device));
    } else {
      alike->device = std::min(alike->device, device.device);
      alike->count += device.count;
      alike->sequences.insert(alike->sequences.end(), device.sequences.begin(),
                              device.sequences.end());
    }
  }
  std::ranges::sort(distinct, {}, &DeviceMemory::device);
  return distinct;
}

const DeviceMemory& fullest(const std::vector<DeviceMemory>& devices) {
  expects(!devices.empty(), "a program has devices");
  return *std::ranges::max_element(devices, {}, &DeviceMemory::used);
}

MemoryFigures highest(const std::vector<DeviceMemory>& devices) {
  MemoryFigures figures;
  for (const DeviceMemory& device : devices) {
    figures.resident = std::max(figures.resident, device.resident);
    figures.allocated = std::max(figures.allocated, device.allocated);
    figures.reserved = std::max(figures.reserved, device.reserved);
    figures.used = std::max(figures.used, device.used());
  }
  return figures;
}

}  // namespace stratagem::sim

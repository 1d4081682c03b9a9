// Follows buffers through calls in program order, then sorts by time.
#include "sim/memory_changes.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "program/buffer_owners.hpp"

namespace stratagem::sim {
namespace {

using program::Program;

/// Numbers buffers as they are allocated.
class Buffers {
 public:
  Buffers(const Program& program, const program::Sequence& sequence)
      : program_(program), sequence_(sequence), owners_(program) {}

  /// Of which call, in which iteration, the next allocations and frees are.
  void enter(int call, int iteration) {
    if (call == call_ && iteration == iteration_) return;
    leave();
    call_ = call;
    iteration_ = iteration;
    own_.assign(program_.blocks[sequence_.calls[call].block].slots.size(), -1);
  }

  int allocate(int slot) { return own_[slot] = allocated_++; }
  /// One that belongs to no call.
  int allocate() { return allocated_++; }

  /// One of this call, or the one that earlier calls of its owner left; -1: none.
  [[nodiscard]] int of(int slot) const {
    if (own_[slot] >= 0) return own_[slot];
    const auto found = left_.find(key(slot));
    return found == left_.end() ? -1 : found->second;
  }

  /// A collective that reads or writes a buffer ends.
  void communicate(int buffer, Instant end) {
    if (buffer < 0) return;
    if (buffer >= static_cast<int>(ready_.size())) ready_.resize(buffer + 1, Instant{0});
    ready_[buffer] = std::max(ready_[buffer], end);
  }
  [[nodiscard]] Instant ready(int buffer) const {
    return buffer >= 0 && buffer < static_cast<int>(ready_.size()) ? ready_[buffer] : Instant{0};
  }

  /// The same, which is no more.
  int release(int slot) {
    if (own_[slot] >= 0) return std::exchange(own_[slot], -1);
    const auto found = left_.find(key(slot));
    if (found == left_.end()) return -1;
    const int buffer = found->second;
    left_.erase(found);
    return buffer;
  }

 private:
  /// What is still alive is for later calls, which know it by its tensor.
  void leave() {
    for (std::size_t slot = 0; slot < own_.size(); ++slot) {
      if (own_[slot] >= 0) left_[key(static_cast<int>(slot))] = own_[slot];
    }
  }

  [[nodiscard]] std::uint64_t key(int slot) const {
    const program::Call& call = sequence_.calls[call_];
    const int place = program_.blocks[call.block].slots[slot].tensor;
    const int tensor = call.segment < 0 ? place : program_.segment_tensors[call.segment][place];
    const auto owner =
        static_cast<std::uint64_t>(iteration_ * owners_.count() + owners_.of(call.cell));
    return owner << 32U | static_cast<std::uint32_t>(tensor);
  }

  const Program& program_;
  const program::Sequence& sequence_;
  program::BufferOwners owners_;
  int call_ = -1;
  int iteration_ = -1;
  int allocated_ = 0;
  std::vector<int> own_;                         ///< by slot of the call
  std::unordered_map<std::uint64_t, int> left_;  ///< by owner and tensor
  std::vector<Instant> ready_;  ///< by buffer: the end of its last collective so far
};

/// Notes the end of a collective between devices with all buffers that it reads or writes.
void note_communication(Buffers& buffers, const program::Task& task, Instant end) {
  const auto* collective = std::get_if<program::Collective>(&task.work);
  if (collective == nullptr || cost::concerns_host(collective->kind)) return;
  for (const auto* slots : {&task.reads, &task.writes}) {
    for (const int slot : *slots) buffers.communicate(buffers.of(slot), end);
  }
}

/// Those of one round, in program order.
void add_round(std::vector<MemoryChange>& changes, Buffers& buffers, const Program& program,
               const Timeline& timeline, std::size_t actor, int round, program::Residence place) {
  const std::vector<FlatTask>& tasks = timeline.tasks[timeline.actors[actor].sequence];
  const program::Sequence& sequence = program.sequences[timeline.actors[actor].sequence];
  const std::vector<Instant>& begins = timeline.times[actor].begins[round];
  const std::vector<Instant>& ends = timeline.times[actor].ends[round];
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (begins[i] == never_ran) continue;
    const program::Block& block = program.blocks[tasks[i].block];
    const program::Task& task = block.tasks[tasks[i].task];
    const bool communicates = std::holds_alternative<program::Collective>(task.work);
    if (task.allocates.empty() && task.frees.empty() && !communicates) continue;
    buffers.enter(tasks[i].call, round - sequence.calls[tasks[i].call].lag);
    const auto id = static_cast<int>(round * tasks.size() + i);
    for (const int slot : task.allocates) {
      const int buffer = buffers.allocate(slot);
      if (block.slots[slot].place != place) continue;
      changes.push_back(
          {begins[i], true, id, buffer, block.slots[slot].category, block.slots[slot].bytes});
    }
    note_communication(buffers, task, ends[i]);
    for (const int slot : task.frees) {
      const int buffer = buffers.release(slot);
      if (block.slots[slot].place != place) continue;
      changes.push_back({ends[i], begins[i] == ends[i], id, buffer, block.slots[slot].category,
                         -1.0 * block.slots[slot].bytes, buffers.ready(buffer)});
    }
  }
}

/// What belongs to the device and lives during a part of the first iteration.
void add_spans(std::vector<MemoryChange>& changes, Buffers& buffers, const Program& program,
               const Timeline& timeline, std::size_t actor, program::Residence place) {
  const int sequence = timeline.actors[actor].sequence;
  const std::vector<FlatTask>& tasks = timeline.tasks[sequence];
  const auto index = [&](const program::TaskOfCall& of) {
    const auto order = [](const FlatTask& task) { return std::pair(task.call, task.task); };
    return std::ranges::lower_bound(tasks, std::pair(of.call, of.task), {}, order) - tasks.begin();
  };
  for (const program::Resident& resident : program.sequences[sequence].residents) {
    if (!resident.span || resident.place != place) continue;
    const auto first = index(resident.span->first);
    const auto last = index(resident.span->last);
    const int buffer = buffers.allocate();
    const Instant allocated = timeline.times[actor].begins[0][first];
    const Instant begin = timeline.times[actor].begins[0][last];
    const Instant freed = timeline.times[actor].ends[0][last];
    changes.push_back(
        {allocated, true, static_cast<int>(first), buffer, resident.category, resident.bytes});
    changes.push_back({freed, begin == freed, static_cast<int>(last), buffer, resident.category,
                       -1.0 * resident.bytes});
  }
}

}  // namespace

std::vector<MemoryChange> memory_changes(const Program& program, const Timeline& timeline,
                                         std::size_t actor, program::Residence place) {
  std::vector<MemoryChange> result;
  Buffers buffers(program, program.sequences[timeline.actors[actor].sequence]);
  for (int round = 0; round <= timeline.lag; ++round)
    add_round(result, buffers, program, timeline, actor, round, place);
  add_spans(result, buffers, program, timeline, actor, place);
  std::ranges::stable_sort(
      result, {}, [](const MemoryChange& c) { return std::tuple(c.when, c.begun, c.task); });
  return result;
}

}  // namespace stratagem::sim

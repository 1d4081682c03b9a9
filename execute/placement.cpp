// Follows allocations and frees as the simulator does, with a clock that ticks once a task.
#include "execute/placement.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/input_error.hpp"
#include "sim/flat_sequence.hpp"
#include "sim/memory_changes.hpp"

namespace stratagem::execute {
namespace {

using program::Category;
using program::Residence;

/// Gaps in a range of addresses without an end.
class Gaps {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t wanted = rounded(bytes);
    if (wanted == 0) return 0;
    auto best = by_offset_.end();
    for (auto gap = by_offset_.begin(); gap != by_offset_.end(); ++gap) {
      if (gap->second >= wanted && (best == by_offset_.end() || gap->second < best->second))
        best = gap;
    }
    if (best == by_offset_.end()) return grow(wanted);
    const auto [offset, length] = *best;
    by_offset_.erase(best);
    if (length > wanted) by_offset_[offset + wanted] = length - wanted;
    return offset;
  }

  void give_back(std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    auto gap = by_offset_.emplace(offset, rounded(bytes)).first;
    const auto next = std::next(gap);
    if (next != by_offset_.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      by_offset_.erase(next);
    }
    if (gap == by_offset_.begin()) return;
    const auto before = std::prev(gap);
    if (before->first + before->second != gap->first) return;
    before->second += gap->second;
    by_offset_.erase(gap);
  }

  [[nodiscard]] std::size_t end() const { return end_; }

 private:
  static std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  /// Behind everything; a gap at the end is part of it.
  std::size_t grow(std::size_t wanted) {
    std::size_t offset = end_;
    if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        by_offset_.erase(last);
      }
    }
    end_ = offset + wanted;
    return offset;
  }

  std::map<std::size_t, std::size_t> by_offset_;
  std::size_t end_ = 0;
};

/// Task i of all rounds runs from 2i to 2i + 1. Where iterations overlap there are rounds before
/// the one with number `lag`, in which every call runs, and as many behind it.
sim::Timeline in_program_order(const program::Program& program, int device) {
  const int sequence = program.devices[device].sequence;
  const sim::Prices no_prices =
      sim::price(program, [](const program::Task&) { return sim::Price{}; });
  sim::Timeline result;
  result.tasks.resize(program.sequences.size());
  result.tasks[sequence] =
      sim::flatten(program, program.sequences[sequence], no_prices, 0, true).tasks;
  result.actors = {
      {.device = device, .multiplicity = 1, .sequence = sequence, .communicator_classes = {}}};
  result.lag = 2 * program.lag;
  sim::ActorTimes times;
  std::int64_t now = 0;
  for (int round = 0; round <= result.lag; ++round) {
    times.begins.emplace_back();
    times.ends.emplace_back();
    for (const sim::FlatTask& task : result.tasks[sequence]) {
      const bool runs = round >= program.sequences[sequence].calls[task.call].lag;
      times.begins.back().push_back(runs ? sim::Instant{now++} : sim::never_ran);
      times.ends.back().push_back(runs ? sim::Instant{now++} : sim::never_ran);
    }
  }
  result.times = {times};
  return result;
}

class Placing {
 public:
  Placing(const program::Program& program, const model::Graph& graph, int device,
          const ElementSizes& sizes)
      : program_(program),
        graph_(graph),
        sequence_(program.sequences[program.devices[device].sequence]),
        sizes_(sizes),
        timeline_(in_program_order(program, device)),
        tasks_(timeline_.tasks[program.devices[device].sequence]) {}

  Placement place() {
    place_residents();
    program_.lag > 0 ? place_rounds() : place_slots();
    result_.extent = gaps_.end();
    return std::move(result_);
  }

 private:
  void place_residents() {
    std::size_t states = 0;
    for (const program::Resident& resident : sequence_.residents) {
      const bool here = resident.place == Residence::device;
      const bool named = resident.tensor >= 0 && here;
      if (resident.span && here) spans_.push_back(static_cast<int>(result_.residents.size()));
      const bool now = named && !resident.span;
      result_.residents.push_back(now ? take(capacity(resident.bytes, resident.tensor)) : -1);
      if (resident.category == Category::optimizer_states && here)
        states += rounded_up(resident.bytes.value / 4) * sizes_.state;
    }
    if (states > 0) result_.states = take(states);
  }

  void place_slots() {
    result_.allocates.resize(tasks_.size());
    result_.frees.resize(tasks_.size());
    std::unordered_map<int, int> buffer_of;
    const int slots = slots_allocated();
    for (const sim::MemoryChange& change : sim::memory_changes(program_, timeline_, 0)) {
      expects(change.buffer >= 0, "what is freed was allocated");
      if (const auto allocated = buffer_of.find(change.buffer); allocated != buffer_of.end()) {
        const Placement::Buffer& dead = result_.buffers[allocated->second];
        gaps_.give_back(dead.offset, dead.capacity);
        result_.frees[change.task].push_back(allocated->second);
        buffer_of.erase(allocated);
      } else if (change.bytes < Bytes{}) {
        continue;  // of a resident that has no place
      } else if (change.buffer < slots) {
        const int slot = next_allocation(change.task);
        const int buffer = take(capacity(change.bytes, tensor(change.task, slot)));
        buffer_of[change.buffer] = buffer;
        result_.allocates[change.task].push_back({slot, buffer});
      } else {
        const int resident = spans_[change.buffer - slots];
        const int named = sequence_.residents[resident].tensor;
        if (named < 0) continue;
        result_.residents[resident] = take(capacity(change.bytes, named));
        buffer_of[change.buffer] = result_.residents[resident];
      }
    }
  }

  /// A slot's buffer that is allocated in the round in which every call runs; tasks count through
  /// rounds.
  struct Life {
    int allocated = 0;
    int slot = 0;
    int freed = -1;
    std::size_t capacity = 0;
  };

  /// In the order in which they are allocated.
  [[nodiscard]] std::vector<Life> lives() {
    const auto tasks = static_cast<int>(tasks_.size());
    std::vector<Life> lives;
    std::unordered_map<int, std::size_t> life_of;
    result_.allocates.resize(tasks_.size());
    for (const sim::MemoryChange& change : sim::memory_changes(program_, timeline_, 0)) {
      expects(change.buffer >= 0, "what is freed was allocated");
      if (const auto allocated = life_of.find(change.buffer); allocated != life_of.end()) {
        lives[allocated->second].freed = change.task;
      } else if (change.bytes >= Bytes{} && change.task / tasks == program_.lag) {
        const int task = change.task % tasks, slot = next_allocation(task);
        life_of[change.buffer] = lives.size();
        result_.allocates[task].push_back({slot, -1});
        lives.push_back({change.task, slot, -1, capacity(change.bytes, tensor(task, slot))});
      }
    }
    return lives;
  }

  /// What outlives its round takes places of its own first, then the others share what is left.
  void place_rounds() {
    const std::vector<Life> all = lives();
    const std::size_t tasks = tasks_.size();
    result_.rounds = program_.lag + 1;
    result_.allocates.assign(tasks * result_.rounds, {});
    result_.frees.assign(tasks * result_.rounds, {});
    std::vector<std::vector<const Life*>> allocates(tasks);
    for (const Life& life : all) {
      expects(life.freed >= 0, "what is allocated in a round is freed");
      if (life.allocated / tasks == life.freed / tasks) {
        allocates[life.allocated % tasks].push_back(&life);
        continue;
      }
      for (int round = 0; round < result_.rounds; ++round) note(life, take(life.capacity), round);
    }
    std::vector<std::vector<int>> frees(tasks);
    for (std::size_t task = 0; task < tasks; ++task) {
      for (const Life* life : allocates[task]) {
        const int buffer = take(life->capacity);
        frees[life->freed % tasks].push_back(buffer);
        for (int round = 0; round < result_.rounds; ++round) note(*life, buffer, round);
      }
      for (const int buffer : frees[task])
        gaps_.give_back(result_.buffers[buffer].offset, result_.buffers[buffer].capacity);
    }
  }

  /// A buffer that is allocated in one of the rounds that differ.
  void note(const Life& life, int buffer, int round) {
    const auto tasks = static_cast<int>(tasks_.size());
    const int later = life.freed / tasks - life.allocated / tasks;
    const int freed = (round + later) % result_.rounds;
    result_.allocates[round * tasks + life.allocated % tasks].push_back({life.slot, buffer});
    result_.frees[freed * tasks + life.freed % tasks].push_back(buffer);
  }

  /// Of slots, wherever they lie: residents with a span are numbered behind them.
  [[nodiscard]] int slots_allocated() const {
    std::size_t count = 0;
    for (const sim::FlatTask& task : tasks_)
      count += program_.blocks[task.block].tasks[task.task].allocates.size();
    return static_cast<int>(count);
  }

  /// The slot that a task allocates next on the device.
  [[nodiscard]] int next_allocation(int task) const {
    const program::Block& block = program_.blocks[tasks_[task].block];
    std::size_t skipped = result_.allocates[task].size();
    for (const int slot : block.tasks[tasks_[task].task].allocates) {
      if (block.slots[slot].place == Residence::device && skipped-- == 0) return slot;
    }
    throw BrokenPromise("a task has as many buffers as it allocates");
  }

  [[nodiscard]] int tensor(int task, int slot) const {
    const program::Call& call = sequence_.calls[tasks_[task].call];
    const int named = program_.blocks[call.block].slots[slot].tensor;
    return named < 0 || call.segment < 0 ? named : program_.segment_tensors[call.segment][named];
  }

  static std::size_t rounded_up(double count) {
    return static_cast<std::size_t>(std::ceil(count - 1e-6));
  }

  [[nodiscard]] std::size_t capacity(Bytes bytes, int tensor) const {
    if (tensor < 0) return rounded_up(bytes.value);
    const std::size_t elements = rounded_up(bytes / model::size_of(graph_.tensors[tensor].type));
    const List list = list_of(graph_, tensor);
    if (list == List::bytes) return elements;
    return elements * (list == List::wide ? sizes_.wide : sizes_.number);
  }

  int take(std::size_t bytes) {
    result_.buffers.push_back({gaps_.take(bytes), bytes});
    return static_cast<int>(result_.buffers.size()) - 1;
  }

  const program::Program& program_;
  const model::Graph& graph_;
  const program::Sequence& sequence_;
  ElementSizes sizes_;
  sim::Timeline timeline_;
  const std::vector<sim::FlatTask>& tasks_;
  std::vector<int> spans_;  ///< residents of the device that live for a part of the iteration
  Gaps gaps_;
  Placement result_;
};

}  // namespace

Placement placement(const program::Program& program, const model::Graph& graph, int device,
                    const ElementSizes& sizes) {
  return Placing(program, graph, device, sizes).place();
}

}  // namespace stratagem::execute

// Follows the calls of each round in program order.
#include "sim/memory_changes.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "base/sort_mixed.hpp"
#include "program/buffers.hpp"

namespace stratagem::sim {
namespace {

using program::Program;
using program::TaskOfCall;

class Changes {
 public:
  Changes(const Program& program, const Timeline& timeline, std::size_t actor,
          program::Residence place, int rounds)
      : program_(program),
        sequence_(timeline.played.sequences[timeline.actors[actor].sequence]),
        tasks_(timeline.tasks[timeline.actors[actor].sequence]),
        times_(timeline.times[actor]),
        place_(place),
        buffers_(program, sequence_),
        ready_(static_cast<std::size_t>(rounds) * buffers_.count(), Instant{0}) {
    result_.reserve(2 * ready_.size());  // each is allocated and freed
  }

  /// Those of one round, in program order.
  void add_round(int round) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const Instant begin = times_.begins[round][i], end = times_.ends[round][i];
      if (begin == never_ran) continue;
      const TaskOfCall at{tasks_[i].call, tasks_[i].task};
      const program::Block& block = program_.blocks[tasks_[i].block];
      first_ = (round - sequence_.calls.body(at.call).lag) * buffers_.count();
      task_ = static_cast<int>(round * tasks_.size() + i);
      buffers_.each_allocated(at, [&](int buffer) { add(buffer, begin, true, 1); });
      note_communication(block.tasks[at.task], at.call, end);
      buffers_.each_freed(at, [&](int buffer) { add(buffer, end, begin == end, -1); });
    }
  }

  std::vector<MemoryChange> take() { return std::move(result_); }

 private:
  void add(int number, Instant when, bool begun, int sign) {
    expects(number >= 0, "what is freed was allocated");
    const program::Slot* slot = buffers_.slot(number);
    slot != nullptr
        ? add_of(*slot, number, when, begun, sign)
        : add_of(sequence_.residents[number - buffers_.resident(0)], number, when, begun, sign);
  }

  /// Of a slot or a resident.
  void add_of(const auto& of, int number, Instant when, bool begun, int sign) {
    if (of.place != place_) return;
    const Instant ready = sign < 0 ? ready_[first_ + number] : Instant{0};
    result_.push_back({when, begun, task_, first_ + number, of.category, sign * of.bytes, ready});
  }

  /// Notes the end of a collective between devices with all buffers that it reads or writes.
  void note_communication(const program::Task& task, int call, Instant end) {
    const auto* collective = std::get_if<program::Collective>(&task.work);
    if (collective == nullptr || cost::concerns_host(collective->kind)) return;
    for (const auto* slots : {&task.reads, &task.writes}) {
      for (const int slot : *slots) {
        const int buffer = buffers_.of(call, slot);
        if (buffer < 0) continue;
        ready_[first_ + buffer] = std::max(ready_[first_ + buffer], end);
      }
    }
  }

  const Program& program_;
  const program::Sequence& sequence_;
  const FlatTasks& tasks_;
  const ActorTimes& times_;
  program::Residence place_;
  program::Buffers buffers_;
  std::vector<Instant> ready_;  ///< by iteration and buffer: the end of its last collective so far
  int first_ = 0;               ///< of the numbers of the iteration's buffers
  int task_ = 0;                ///< as MemoryChange::task
  std::vector<MemoryChange> result_;
};

}  // namespace

std::vector<MemoryChange> changes_by_task(const Program& program, const Timeline& timeline,
                                          std::size_t actor, program::Residence place,
                                          std::optional<int> rounds) {
  const int count = rounds.value_or(timeline.lag + 1);
  Changes changes(program, timeline, actor, place, count);
  for (int round = 0; round < count; ++round) changes.add_round(round);
  return changes.take();
}

std::vector<int> order_of_time(const std::vector<MemoryChange>& by_task) {
  struct Key {
    Instant when;
    bool begun = false;
    int place = 0;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  keys.reserve(by_task.size());
  for (const MemoryChange& change : by_task)
    keys.push_back({change.when, change.begun, static_cast<int>(keys.size())});
  sort_mixed(keys);
  std::vector<int> order;
  order.reserve(keys.size());
  for (const Key& key : keys) order.push_back(key.place);
  return order;
}

std::vector<MemoryChange> memory_changes(const Program& program, const Timeline& timeline,
                                         std::size_t actor, program::Residence place,
                                         std::optional<int> rounds) {
  const std::vector<MemoryChange> by_task =
      changes_by_task(program, timeline, actor, place, rounds);
  std::vector<MemoryChange> result;
  result.reserve(by_task.size());
  for (const int i : order_of_time(by_task)) result.push_back(by_task[i]);
  return result;
}

}  // namespace stratagem::sim

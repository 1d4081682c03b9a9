// Follows the calls of each round in program order, then sorts by time.
#include "sim/memory_changes.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"
#include "program/buffers.hpp"

namespace stratagem::sim {
namespace {

using program::Program;
using program::TaskOfCall;

class Changes {
 public:
  Changes(const Program& program, const Timeline& timeline, std::size_t actor,
          program::Residence place)
      : program_(program),
        sequence_(program.sequences[timeline.actors[actor].sequence]),
        tasks_(timeline.tasks[timeline.actors[actor].sequence]),
        times_(timeline.times[actor]),
        place_(place),
        buffers_(program, sequence_),
        ready_((timeline.lag + std::size_t{1}) * buffers_.count(), Instant{0}) {
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

  std::vector<MemoryChange> sorted() {
    std::ranges::stable_sort(
        result_, {}, [](const MemoryChange& c) { return std::tuple(c.when, c.begun, c.task); });
    return std::move(result_);
  }

 private:
  void add(int number, Instant when, bool begun, int sign) {
    expects(number >= 0, "what is freed was allocated");
    const program::Buffer buffer = buffers_[number];
    if (buffer.place != place_) return;
    const Instant ready = sign < 0 ? ready_[first_ + number] : Instant{0};
    result_.push_back(
        {when, begun, task_, first_ + number, buffer.category, sign * buffer.bytes, ready});
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

std::vector<MemoryChange> memory_changes(const Program& program, const Timeline& timeline,
                                         std::size_t actor, program::Residence place) {
  Changes changes(program, timeline, actor, place);
  for (int round = 0; round <= timeline.lag; ++round) changes.add_round(round);
  return changes.sorted();
}

}  // namespace stratagem::sim

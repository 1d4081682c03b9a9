// Follows the compute stream of every sequence through as many rounds as one iteration takes.
#include "sim/least_memory.hpp"

#include <algorithm>
#include <vector>

#include "base/input_error.hpp"
#include "program/buffers.hpp"
#include "sim/device_memory.hpp"
#include "sim/flat_tasks.hpp"

namespace stratagem::sim {
namespace {

using program::Program;
using program::TaskOfCall;

/// The highest sum of the buffers that computations both allocate and free.
class Computed {
 public:
  Computed(const Program& program, const program::Sequence& sequence)
      : program_(program),
        sequence_(sequence),
        buffers_(program, sequence),
        tasks_(program, sequence) {}

  Bytes highest() {
    for (int round = 0; round <= program_.lag; ++round) {
      for (const FlatTask& flat : tasks_) {
        if (flat.stream == program::Stream::compute && iteration(round, flat.call) >= 0) run(flat);
      }
    }
    return highest_;
  }

 private:
  [[nodiscard]] int iteration(int round, int call) const {
    return round - sequence_.calls.body(call).lag;
  }

  void run(const FlatTask& flat) {
    const TaskOfCall at{flat.call, flat.task};
    buffers_.each_allocated(at, [&](int number) { live_ += counted(number); });
    highest_ = std::max(highest_, live_);
    buffers_.each_freed(at, [&](int number) { live_ -= counted(number); });
  }

  [[nodiscard]] bool computes(const TaskOfCall& at) const {
    const program::Block& block = program_.blocks[sequence_.calls.body(at.call).block];
    return block.tasks[at.task].stream == program::Stream::compute;
  }

  [[nodiscard]] Bytes counted(int number) const {
    expects(number >= 0, "what is freed was allocated");
    const program::Buffer buffer = buffers_[number];
    const bool both =
        buffer.born && buffer.dies && computes(*buffer.born) && computes(*buffer.dies);
    return both && buffer.place == program::Residence::device ? buffer.bytes : Bytes{};
  }

  const Program& program_;
  const program::Sequence& sequence_;
  program::Buffers buffers_;
  FlatTasks tasks_;
  Bytes live_;
  Bytes highest_;
};

}  // namespace

Bytes least_memory(const Program& program, const cost::Profile& profile, const cost::Stack& stack,
                   const std::vector<int>& groups_beside) {
  std::vector<bool> seen(program.sequences.size(), false);
  Bytes highest;
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    const int sequence = program.devices[device].sequence;
    if (seen[sequence]) continue;
    seen[sequence] = true;
    const DeviceMemory beside =
        memory_beside(program, static_cast<int>(device), profile, stack, groups_beside);
    highest = std::max(highest, sum(residents(program, sequence, program::Residence::device)) +
                                    Computed(program, program.sequences[sequence]).highest() +
                                    beside.context + beside.communicators + beside.workspace);
  }
  return highest;
}

}  // namespace stratagem::sim

// A sequence under construction: its calls so far, and what later calls wait for.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost/optimizer.hpp"
#include "lowering/blocks/blocks.hpp"
#include "lowering/blocks/redistribution.hpp"
#include "lowering/cells/cells.hpp"
#include "lowering/cells/versions.hpp"
#include "lowering/stages/stages.hpp"
#include "lowering/weights/parameters.hpp"

namespace stratagem::lowering {

/// What a sequence is built from.
struct SequenceContext {
  const strategies::Plan& plan;
  const cost::Stack& stack;
  const cost::Training& training;
  const Stages& stages;
  const CellOrder& order;
  const std::vector<Versions>& versions;
  const Parameters& parameters;
  Groups& groups;
  BlockTable& table;
  const std::vector<std::unique_ptr<Blocks>>& slices;  ///< of the tokens, one if they are whole
  /// By tensor, replicas and slice.
  std::map<std::array<int, 4>, RedistributionBlocks>& redistributions;
  strategies::Residency residency;  ///< the plan's, in which no rule leaves stages open
};

/// A task of the sequence.
struct Written {
  int call = -1;
  int task = -1;
};

class SequenceDraft {
 public:
  SequenceDraft(const SequenceContext& context, int device_class)
      : c_(context), device_class_(device_class) {}

  /// Layouts refer to the grid of the cell's stage, or of another one that runs the call for it.
  int add_call(int block, int segment, const ScheduledCell& of, int on_stage = -1);
  /// Task `task` of a call starts after an earlier one has ended.
  void wait(int call, int task, const Written& earlier);
  /// The number of the block under `key`, for a block whose contents its neighbours need not know.
  int shared(const std::string& key, const std::function<program::Block()>& make);

  [[nodiscard]] const std::vector<program::StoredCall>& calls() const { return calls_; }
  [[nodiscard]] const std::vector<program::Task>& tasks_of(int call) const;
  [[nodiscard]] program::Stream stream_of(const Written& task) const;
  /// Decides in which order the tasks of the calls from `first` on are launched.
  void launch_in(std::vector<program::Launch> launches, int first);

  /// The last task on the compute stream so far. The first function returns nullopt if there is
  /// none, the second expects one.
  [[nodiscard]] std::optional<Written> computed() const;
  [[nodiscard]] Written last_computation() const;
  /// The first task of every queue of a call's block.
  [[nodiscard]] std::vector<int> first_of_queues(int call) const;

  /// The last one of each.
  [[nodiscard]] std::vector<int> last_of_queues(int call) const;

  /// The replica of a stage in the copy that works on the micro-batch of a cell.
  [[nodiscard]] int replica_of(int stage, const placement::Cell& cell) const {
    return c_.stages.replica(stage, c_.plan.copy_of(stage, cell.micro_batch));
  }
  [[nodiscard]] const Replica& replica(int stage, const placement::Cell& cell) const {
    return c_.stages.replicas()[replica_of(stage, cell)];
  }
  [[nodiscard]] int device_class() const { return device_class_; }

  /// Records that a task adds to the gradient of a parameter, or steps the parameter.
  void note_addition(model::TensorId gradient, program::TaskOfCall task) {
    added_.emplace(gradient, task);
  }
  void note_step(model::TensorId parameter, program::TaskOfCall task) {
    stepped_.emplace(parameter, task);
  }
  /// Records the end of the gradient reductions so far.
  void note_reduction(Written task) { last_reduction_ = task; }
  [[nodiscard]] const std::optional<Written>& last_reduction() const { return last_reduction_; }
  /// From the first step to the last; none if nothing steps here.
  [[nodiscard]] std::optional<program::Resident::Span> steps_span() const;
  /// From the first task that adds to a parameter's gradient to its step; none if nothing steps it
  /// here.
  [[nodiscard]] std::optional<program::Resident::Span> gradient_span(
      model::TensorId parameter) const;
  /// From the first computation of the first backward cell to the last before the steps, including
  /// the reductions of what these cells added; nullopt without backward cells.
  [[nodiscard]] std::optional<program::Resident::Span> backward_span() const;
  /// Does the device class of the sequence belong to a replica?
  [[nodiscard]] bool runs_replica(int replica) const;

  program::Sequence finish(std::vector<program::Resident> residents);

 private:
  void launch_whole(int end);
  [[nodiscard]] std::optional<Written> last_computation_of(const program::Launch& launch) const;
  /// The first and the last task of every queue of a call's block.
  [[nodiscard]] std::map<std::pair<program::Stream, int>, std::pair<int, int>> queues_of(
      int call) const;

  const SequenceContext& c_;
  int device_class_;
  std::vector<program::StoredCall> calls_;
  program::Sequence sequence_;  ///< the rest of it
  int launched_ = 0;  ///< calls of which sequence_.launches says in which order they are launched
  std::optional<Written> last_reduction_;
  std::map<model::TensorId, program::TaskOfCall> added_;    ///< the first ones, by gradient
  std::map<model::TensorId, program::TaskOfCall> stepped_;  ///< by parameter
};

}  // namespace stratagem::lowering

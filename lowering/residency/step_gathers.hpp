// Gathers of weights that every device holds whole and of which each has stepped a shard.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lowering/residency/ahead.hpp"

namespace stratagem::lowering {

/// The gathers of those among `parameters` of which each device of a class steps a shard, from the
/// shards into the whole weights; for a `purpose` as of Groups::along. Without such parameters it
/// has no tasks.
program::Block step_gathers(const SequenceContext& context, int device_class, std::string name,
                            program::Stream stream, int purpose,
                            const std::vector<model::TensorId>& parameters);

/// If the plan has these gathers before the first use: each weight's comes ahead of the first run
/// of an iteration that reads it, and after the steps of the iteration before.
class StepGathers : public AheadOfRuns {
 public:
  /// `runs`: all of an iteration, in order.
  StepGathers(const SequenceContext& context, SequenceDraft& draft,
              const std::vector<SegmentRun>& runs);

  /// Is the run that comes next the first that reads some weight?
  [[nodiscard]] bool needed(const SegmentRun& run) const;

 private:
  using FirstUse = std::pair<SegmentRun, std::vector<model::TensorId>>;

  StepGathers(const SequenceContext& context, SequenceDraft& draft, std::vector<FirstUse> uses);
  static std::vector<FirstUse> first_uses(const SequenceContext& context, int device_class,
                                          const std::vector<SegmentRun>& runs);
  [[nodiscard]] bool may_issue(std::size_t /*run*/) const override { return true; }
  Written issue(std::size_t index) override;
  void connect(std::size_t index, int call) override;

  std::vector<FirstUse> uses_;
};

}  // namespace stratagem::lowering

// Weights of which every device keeps a shard, gathered ahead of the segments that read them.
#pragma once

#include <vector>

#include "lowering/residency/ahead.hpp"

namespace stratagem::lowering {

/// The gathers of the plan's `shards`. If parameters are on the host, each gather follows a copy of
/// the shards from there, or is that copy if nothing divides them. If parameters are on drives,
/// that copy follows a read of as many bytes into host memory, on a stream of its own; with
/// `prefetch` above 0 the next segments' reads run meanwhile. Fetches of an iteration follow the
/// steps of the one before, since the thread that launches them also steps. If a run between issue
/// and use reads the same weights for the same micro-batch, they are still there, so the gather
/// comes after that run. So no buffer stays from the last forward pass to the first backward pass.
class Gathers : public AheadOfRuns {
 public:
  /// Is there anything to gather for a run?
  static bool needed(const SegmentRun& run) { return !run.block->lowered.gathered.empty(); }

  /// `runs`: all of an iteration, in order.
  Gathers(const SequenceContext& context, SequenceDraft& draft, std::vector<SegmentRun> runs);

 private:
  [[nodiscard]] bool may_issue(std::size_t run) const override;
  Written issue(std::size_t index) override;
  void connect(std::size_t index, int call) override;
  void wait_for_device(int call);
  [[nodiscard]] bool same_buffers(std::size_t one, std::size_t other) const;
  [[nodiscard]] program::Block gather_block(const SegmentRun& run, bool first) const;
  [[nodiscard]] Bytes kept_of(const SegmentRun& run) const;
  [[nodiscard]] program::Task read_task(const SegmentRun& run, program::Block& block) const;
  [[nodiscard]] program::Task fetch_task(const SegmentRun& run) const;
};

}  // namespace stratagem::lowering

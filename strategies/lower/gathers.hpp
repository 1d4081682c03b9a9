// Weights of which every device keeps a shard, gathered ahead of the segments that read them.
#pragma once

#include <vector>

#include "strategies/lower/ahead.hpp"

namespace stratagem::strategies {

/// The gathers of the plan's `shards`; where parameters are on the host each is behind a copy of
/// the shards from there, or is that copy, where nothing divides them; where they are on its drives, that
/// is behind a read into the host's memory, on a stream of its own, so that with `prefetch` above 0 the
/// next segments' are read beside it: as many bytes as the copy has. Fetches of an iteration
/// follow the steps of the one before, since the thread that launches them steps, too. Where one of
/// the runs between issue and use is of the same weights for the same micro-batch, which are still
/// there, they are gathered after it: no buffer stays from the last forward pass to the first
/// backward pass.
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
  [[nodiscard]] Block gather_block(const SegmentRun& run, bool first) const;
  [[nodiscard]] Bytes kept_of(const SegmentRun& run) const;
  [[nodiscard]] Task read_task(const SegmentRun& run, Block& block) const;
  [[nodiscard]] Task fetch_task(const SegmentRun& run) const;
};

}  // namespace stratagem::strategies

// Weights of which every device keeps a shard, gathered ahead of the segments that read them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategies/lower/sequence_draft.hpp"

namespace stratagem::strategies {

/// One segment of one cell as its host runs it.
struct SegmentRun {
  int segment = 0;
  const ScheduledCell* of = nullptr;
  const NumberedBlock* block = nullptr;  ///< of the host's own device
};

/// Adds the gathers of the plan's `shards` to the sequence of one host. Those of the segment that
/// runs k-th are issued right before the (k - prefetch)-th runs, so that a host that lags behind its
/// device does not hold them up, and begin when the (k - prefetch - 1)-th has run. Where one of
/// these two is a run of the same weights for the same micro-batch, which are still there, they are
/// gathered after it: no buffer stays from the last forward pass to the first backward pass.
class Gathers {
 public:
  /// `runs`: all of an iteration, in order.
  Gathers(const SequenceContext& context, SequenceDraft& draft, std::vector<SegmentRun> runs);

  /// Before the call of the next run: issues what is due.
  void before_run();
  /// After it: makes it wait for its own weights.
  void after_run(int call);

 private:
  [[nodiscard]] bool same_buffers(std::size_t one, std::size_t other) const;
  void issue(std::size_t run);
  [[nodiscard]] Block gather_block(const SegmentRun& run, bool first) const;

  const SequenceContext& c_;
  SequenceDraft& draft_;
  std::vector<SegmentRun> runs_;          ///< those that read weights of which shards are kept
  std::size_t now_ = 0;                   ///< the next of them to run
  std::vector<Written> gathered_;         ///< by run: the last task of its gathers
  std::vector<Written> ended_;            ///< by run: its last computation
};

}  // namespace stratagem::strategies

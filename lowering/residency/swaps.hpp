// Activations that wait for their backward pass in host memory, or on other devices.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "lowering/residency/ahead.hpp"

namespace stratagem::lowering {

/// The copies of the plan's `swap`. A segment's copy out follows its forward run, and its copy in
/// comes ahead of its backward run, after the copy out.
class Swaps : public AheadOfRuns {
 public:
  /// `runs`: all of an iteration, in order.
  Swaps(const SequenceContext& context, SequenceDraft& draft, const std::vector<SegmentRun>& runs);

  /// This device class's part in the copies of others: all before its first cell, as for Evictions.
  void add_copies_for_peers();
  /// Does a forward run leave something that waits elsewhere?
  [[nodiscard]] bool leaves(const SegmentRun& run) const;
  /// Is a run of B or W the first that needs what waits there?
  [[nodiscard]] bool comes_back(const SegmentRun& run) const;
  /// After the call of a forward run: what it keeps leaves, and the run waits until there is room.
  void copy_out(const SegmentRun& run, int call);

 private:
  using Key = std::pair<int, int>;  ///< segment and micro-batch

  /// The first run of B or W of each segment and micro-batch.
  static std::vector<SegmentRun> backward(const SequenceContext& context,
                                          const std::vector<SegmentRun>& runs);
  [[nodiscard]] bool may_issue(std::size_t index) const override;
  Written issue(std::size_t index) override;
  void connect(std::size_t index, int call) override;
  [[nodiscard]] int copy_block(int segment, bool out, const placement::Cell& cell) const;
  [[nodiscard]] program::Block lowered_copy(int segment, bool out) const;
  [[nodiscard]] program::Block buffers(int segment, bool freed, bool guest) const;
  [[nodiscard]] int peer_block(int segment, bool out, bool guest,
                               const placement::Cell& cell) const;
  void add_copies_for_cell(const ScheduledCell& of, std::map<Key, Written>& taken_in);

  std::map<Key, Written> left_;  ///< copies out
  std::vector<Written> out_;     ///< the same in order
};

}  // namespace stratagem::lowering

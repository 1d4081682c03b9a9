// Adds calls that bring what segments need (weights, activations) to the device ahead of them.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// One segment of one cell as a device class runs it.
struct SegmentRun {
  int segment = 0;
  const ScheduledCell* of = nullptr;
  const NumberedBlock* block = nullptr;  ///< of the class's own devices
  bool again = false;  ///< runs forward in a backward cell, together with other segments
};

/// Adds to the sequence of a device class a call for every run that needs something. The call for
/// the k-th run is issued right before the (k - prefetch)-th run, so that a host that lags behind
/// its device does not delay it. It begins when the (k - room)-th run has ended, so at most `room`
/// runs have what they need at once.
class AheadOfRuns {
 public:
  /// `runs`: those of an iteration that need something, in order. `room`: 0 for `prefetch` + 1.
  AheadOfRuns(const SequenceContext& context, SequenceDraft& draft, std::vector<SegmentRun> runs,
              int prefetch, int room = 0);
  virtual ~AheadOfRuns() = default;
  AheadOfRuns(const AheadOfRuns&) = delete;
  AheadOfRuns& operator=(const AheadOfRuns&) = delete;

  /// Call before the next run's call: issues the calls that are due.
  void before_run();
  /// Call after the run's call: makes it wait for what it needs.
  void after_run(int call);

 protected:
  /// May the call for a run be issued already?
  [[nodiscard]] virtual bool may_issue(std::size_t run) const = 0;
  /// Adds the call that brings it; returns its last task.
  virtual Written issue(std::size_t run) = 0;
  /// Makes the call of a run wait.
  virtual void connect(std::size_t run, int call) = 0;
  /// What ends a run, after its call: then there is room for others.
  virtual Written end_of(std::size_t /*run*/, int /*call*/) { return draft_.last_computation(); }

  [[nodiscard]] const SegmentRun& run(std::size_t index) const { return runs_[index]; }
  [[nodiscard]] std::size_t next() const { return ended_.size(); }  ///< the next to run
  [[nodiscard]] std::optional<SegmentRun> next_run() const;
  /// The task that brought what a run needs.
  [[nodiscard]] const Written& brought(std::size_t run) const { return brought_[run]; }
  /// Is a run far enough behind the first to wait for the end of another? If so, makes it wait.
  bool wait_for_room(std::size_t run, int call);
  /// Makes the call for a run wait until there is room, else for the first run's; returns its last
  /// task.
  Written follow(std::size_t run, int call);
  /// On each stream, the first task of a run's call that reads a tensor at one of these places
  /// waits for what was brought.
  void hold_readers(std::size_t run, int call, const std::set<int>& places);

  [[nodiscard]] const SequenceContext& context() const { return c_; }
  [[nodiscard]] SequenceDraft& draft() const { return draft_; }

 private:
  const SequenceContext& c_;
  SequenceDraft& draft_;
  std::vector<SegmentRun> runs_;
  std::size_t ahead_;             ///< from its issue to the run
  std::size_t room_;              ///< how many runs are served at once
  std::vector<Written> brought_;  ///< by run
  std::vector<Written> ended_;    ///< by run
};

}  // namespace stratagem::lowering

// What the cells of a device class run, in order.
#pragma once

#include <optional>
#include <vector>

#include "lowering/draft/sequence_draft.hpp"
#include "lowering/residency/ahead.hpp"

namespace stratagem::lowering {

/// What a cell runs k-th: nothing if it has no segments. After its last the cell has ended.
struct NextRun {
  int cell = 0;  ///< its place among those of the device class
  int k = 0;
  std::optional<SegmentRun> run;
  bool last = false;
};

/// The runs of the cells of one device class: which segments, and which block of each.
class CellRuns {
 public:
  CellRuns(const SequenceContext& context, int device_class)
      : c_(context), device_class_(device_class), cells_(context.order.rounds[device_class]) {}

  [[nodiscard]] const std::vector<ScheduledCell>& cells() const { return cells_; }
  /// Behind a cell and those that run together with it.
  [[nodiscard]] int end_of(int first) const;
  /// Do the cells from `first` to `end` run segment by segment in turns? Two may.
  [[nodiscard]] bool take_turns(int first, int end) const;
  /// Of cells that run together, in the order in which they run.
  [[nodiscard]] std::vector<NextRun> in_order(int first, int end) const;
  [[nodiscard]] std::vector<SegmentRun> all() const;

 private:
  [[nodiscard]] std::vector<SegmentRun> of_cell(const ScheduledCell& of) const;
  void add_second_runs(std::vector<SegmentRun>& runs, const ScheduledCell& of, int segment) const;
  [[nodiscard]] const NumberedBlock* own(const placement::Cell& cell,
                                         const NumberedBlock* block) const;
  [[nodiscard]] const NumberedBlock* block_for(const placement::Cell& cell,
                                               const SegmentBlocks& lowered) const;

  const SequenceContext& c_;
  int device_class_;
  const std::vector<ScheduledCell>& cells_;
};

}  // namespace stratagem::lowering

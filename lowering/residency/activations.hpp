// Activations that wait for their backward pass in host memory, or on the devices of another stage.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowering/residency/ahead.hpp"

namespace stratagem::lowering {

/// The copies of the plan's rules for activations (strategies::Keep). What a segment leaves goes
/// right after its forward run, and comes back ahead of its backward run. What a whole cell leaves
/// goes when the cell has ended, and comes back right before the backward cell.
class Activations : public AheadOfRuns {
 public:
  /// `runs`: all of an iteration, in order.
  Activations(const SequenceContext& context, SequenceDraft& draft,
              const std::vector<SegmentRun>& runs);

  /// This device class's part in the copies of the cells of other stages that come before `place`
  /// in the order of all cells. So devices that do one call after the other never wait in a circle.
  void serve_peers(int place);
  /// Does a forward run leave something that waits elsewhere?
  [[nodiscard]] bool leaves(const SegmentRun& run) const;
  /// Is a run of B or W the first that needs what waits there?
  [[nodiscard]] bool comes_back(const SegmentRun& run) const;
  /// After the call of a forward run: what it keeps leaves, and the run waits until there is room.
  void copy_out(const SegmentRun& run, int call);
  /// After a forward cell, if what it keeps leaves as a whole.
  void copy_out(const ScheduledCell& of);
  /// Before a backward cell: brings back what its forward cell sent away as a whole, once the cell
  /// before it has ended; not earlier, since room was made for it by then. The first blocks of the
  /// cell wait for the result.
  std::optional<Written> copy_in(const ScheduledCell& of);

 private:
  using Key = std::pair<int, int>;  ///< first segment, and micro-batch
  /// What leaves, and comes back, in one copy.
  struct Portion {
    std::vector<int> segments;
    const strategies::Keep* rule = nullptr;
  };

  /// A cell of another stage, and what of it this device class takes in or gives back.
  struct GuestCell {
    const ScheduledCell* of = nullptr;
    Portion portion;
  };

  /// The first run of B or W of each segment and micro-batch.
  static std::vector<SegmentRun> backward(const SequenceContext& context,
                                          const std::vector<SegmentRun>& runs);
  [[nodiscard]] bool may_issue(std::size_t index) const override;
  Written issue(std::size_t index) override;
  void connect(std::size_t index, int call) override;
  [[nodiscard]] std::optional<Portion> portion_of(const placement::Cell& cell) const;
  [[nodiscard]] Portion portion_of(int segment) const;
  [[nodiscard]] std::vector<Portion> portions_of(const placement::Cell& cell) const;
  int add_copy(const Portion& portion, bool out, bool guest, const ScheduledCell& of);
  [[nodiscard]] int host_block(const Portion& portion, bool out) const;
  [[nodiscard]] int peer_block(const Portion& portion, bool out, bool guest,
                               const placement::Cell& cell) const;
  std::vector<int> add_slots(program::Block& block, const Portion& portion, bool guest,
                             program::Residence place) const;
  [[nodiscard]] Written last_of(int call) const;
  [[nodiscard]] std::string key_of(const Portion& portion) const;
  [[nodiscard]] std::string name_of(const Portion& portion) const;
  [[nodiscard]] std::vector<GuestCell> guest_cells() const;

  std::map<Key, Written> left_;    ///< copies out of segments
  std::vector<Written> out_;       ///< the same in order
  std::vector<GuestCell> guests_;  ///< in the order of all cells
  std::size_t served_ = 0;         ///< of these
  std::map<Key, Written> taken_in_;
};

}  // namespace stratagem::lowering

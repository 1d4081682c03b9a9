// Activations that devices evict to the devices of another stage, and those that they take in.
#pragma once

#include <optional>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// Adds the copies of a plan's evictions to the sequence of one device class.
class Evictions {
 public:
  Evictions(const SequenceContext& context, SequenceDraft& draft) : c_(context), draft_(draft) {}

  /// This device class's part in the copies of others. All before its first cell: the other side
  /// says when each copy begins, and devices that wait for their own cells would hold it up.
  void add_copies_for_peers();
  /// After a forward cell: sends away what it keeps.
  void evict_from(const ScheduledCell& of);
  /// Before a backward cell: fetches what it needs once the cell before it has ended; not earlier,
  /// since room was made for it by then. The first blocks of the cell wait for the result.
  std::optional<Written> fetch_for(const ScheduledCell& of);

 private:
  [[nodiscard]] std::optional<strategies::Eviction> eviction_of(const placement::Cell& cell) const;
  [[nodiscard]] bool stands_in(int device_class, int stage) const;
  int move(const strategies::Eviction& eviction, const ScheduledCell& of, bool back, bool guest);

  const SequenceContext& c_;
  SequenceDraft& draft_;
};

}  // namespace stratagem::lowering

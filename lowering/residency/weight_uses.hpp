// What runs of segments need of weights, and what they leave: gathers before first uses, parts that
// wait between passes, and the end of what was whole.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "lowering/residency/ahead.hpp"

namespace stratagem::lowering {

/// A weight becomes whole, or less divided, before a run.
struct WeightMove {
  enum class From : std::uint8_t {
    step,    ///< from the parts that ranks have stepped, to what they keep, in its place
    rest,    ///< from where it waits between micro-batches, to a buffer in which it is whole
    passes,  ///< from the part that waits between passes, likewise
  };
  From from = From::rest;
  model::TensorId parameter = -1;
  int place = 0;  ///< in the table of the segment that reads it
  const LocalHolding* local = nullptr;
};

/// After a run, a weight is no longer whole.
struct WeightLeaving {
  int place = 0;
  const LocalHolding* local = nullptr;
  bool for_good = true;  ///< for its micro-batch; else a part waits for the next pass
};

/// A run among those of its device class.
using RunKey = std::tuple<const ScheduledCell*, int, bool>;
inline RunKey key_of(const SegmentRun& run) { return {run.of, run.segment, run.again}; }

struct WeightUses {
  std::vector<SegmentRun> runs;                ///< those that need something
  std::vector<std::vector<WeightMove>> moves;  ///< by the same
  /// Empty where weights are whole for one run alone: its block frees them.
  std::map<RunKey, std::vector<WeightLeaving>> leavings;
};

/// `runs`: all of an iteration, in order. Throws InputError where a micro-batch uses a weight that
/// is kept for the passes of another.
WeightUses weight_uses(const SequenceContext& context, int device_class,
                       const std::vector<SegmentRun>& runs);

}  // namespace stratagem::lowering

// From the devices that produce a tensor to those that consume it: the steps that bring every
// consumer its mask.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost/ring.hpp"
#include "placement/layout.hpp"
#include "placement/mask.hpp"

namespace stratagem::lowering {

/// What one device has, or wants to have, of a tensor.
struct Piece {
  int device = 0;
  placement::Mask mask;
  friend auto operator<=>(const Piece&, const Piece&) = default;
};

/// The first three stay on one device; the others are the collectives of the same names.
/// Reductions, gathers and scatters between two groups of devices are sends with local steps
/// around them.
enum class StepKind : std::int8_t {
  select = -3,  ///< a part of what is read, or zeros
  sum,          ///< of partial values of the same elements
  concatenate,  ///< parts that fill a box, wherever they lie in it
  all_reduce = static_cast<int>(cost::CollectiveKind::all_reduce),
  all_gather = static_cast<int>(cost::CollectiveKind::all_gather),
  reduce_scatter = static_cast<int>(cost::CollectiveKind::reduce_scatter),
  all_to_all = static_cast<int>(cost::CollectiveKind::all_to_all),
  broadcast = static_cast<int>(cost::CollectiveKind::broadcast),
  send = static_cast<int>(cost::CollectiveKind::send)
};
std::string to_text(StepKind);
[[nodiscard]] bool communicates(StepKind);
/// Expects communicates().
cost::CollectiveKind collective(StepKind);
/// A conversion that does not communicate is a select.
StepKind kind_of(const placement::Conversion&);

/// One device's share of a step: the masks that it reads, and the one that it holds afterwards.
struct Share {
  int device = 0;
  std::vector<placement::Mask> reads;
  placement::Mask holds;
  friend auto operator<=>(const Share&, const Share&) = default;
};

/// Groups work in parallel, their shares are in the order of ranks.
///   select, sum, concatenate: groups of one; a device may have several. A select reads one mask,
///     or none and holds zeros
///   send, broadcast: the first rank reads and goes on holding the mask, the others read nothing;
///     a device may be in several groups, and all devices can take them in the order given here
///   collectives: every rank reads one mask; a device is in at most one group
/// A value becomes partial values by select: one device reads it and holds it as one of the parts,
/// the others read nothing and hold zeros.
struct Step {
  StepKind kind = StepKind::select;
  std::vector<std::vector<Share>> groups;
  friend auto operator<=>(const Step&, const Step&) = default;
};

/// In order. What a step leaves takes the place of an equal mask that the device held before; after
/// the last step every consumer holds its mask.
struct Redistribution {
  std::vector<Step> steps;
  friend auto operator<=>(const Redistribution&, const Redistribution&) = default;
};

/// Elements per kind of communicating step, summed over groups (placement::volume).
std::map<StepKind, double> volume(const Redistribution&);

}  // namespace stratagem::lowering

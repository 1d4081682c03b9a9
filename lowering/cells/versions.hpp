// Which version of the weights every cell reads in plans without a flush, and how many are kept.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "lowering/cells/cells.hpp"

namespace stratagem::lowering {

/// The weights of one replica. Version v is there after v updates.
struct Versions {
  int live = 1;  ///< how many are kept at the same time at most
  /// By micro-batch: its F and B of iteration i read version max(0, i - behind). 0 with a
  /// flush, 1 if steps are delayed.
  std::vector<int> behind;
};

/// By replica. An update follows the last weight gradient of an iteration on its devices. Kept are
/// the newest version and all that a backward cell, or a forward cell yet to come, will read.
/// Throws InputError where a plan reads a version that is not there yet.
std::vector<Versions> weight_versions(const strategies::Plan& plan, const Stages& stages,
                                      const CellOrder& order);

}  // namespace stratagem::lowering

// One mask made on its device from disjoint parts of it.
#pragma once

#include <utility>
#include <vector>

#include "lowering/redistribute/steps.hpp"

namespace stratagem::lowering {

/// Local shares, in the order in which they run; empty where nothing is to do.
struct Assembly {
  std::vector<Share> cuts;            ///< selects
  std::vector<Share> sums;            ///< sums
  std::vector<Share> concatenations;  ///< at most one
};

/// Expects that the parts make up the target, each element and partial value once. Partial values
/// of different elements are cut along each other's bounds first, so that any such parts can be
/// summed and what remains tiles the target.
Assembly assemble(int device, const std::vector<placement::Mask>& parts,
                  const placement::Mask& target);

/// Shares as groups of one, without repetitions.
std::vector<std::vector<Share>> alone(const std::vector<Share>&);
/// All assemblies at once: up to one step of each kind.
std::vector<Step> steps_of(const std::vector<Assembly>&);

}  // namespace stratagem::lowering

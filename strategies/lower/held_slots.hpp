// Buffers that variables of a framework's code name beyond their last use.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cost/stack.hpp"

namespace stratagem::strategies {

/// What a stack's held_inputs (cost::HeldInputs) keep alive in a block, operator by operator.
class HeldSlots {
 public:
  explicit HeldSlots(const std::vector<cost::HeldInputs>& rules) : rules_(rules) {}

  /// An operator of a kind, as stacks name it, reads these slots. Returns those that are let go when it
  /// has run.
  std::vector<int> pass(const std::string& kind, const std::vector<int>& reads);

 private:
  const std::vector<cost::HeldInputs>& rules_;
  std::map<std::string, std::vector<int>> held_;  ///< by the kind that lets them go
};

}  // namespace stratagem::strategies

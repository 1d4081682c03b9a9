// Rules of held inputs: buffers that stay allocated beyond their last use, because a variable of
// the framework's code refers to them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost/stack.hpp"

namespace stratagem::lowering {

/// The buffers that these rules keep alive in a block, operator by operator.
class HeldSlots {
 public:
  explicit HeldSlots(const cost::Stack& stack) : rules_(cost::rules_of<cost::HeldInputs>(stack)) {}

  [[nodiscard]] bool empty() const { return rules_.empty(); }
  /// An operator of this kind (a name of stacks) reads these slots. Returns the slots that may be
  /// freed when it has run.
  std::vector<int> pass(const std::string& kind, const std::vector<int>& reads) {
    for (const cost::HeldInputs& rule : rules_) {
      if (rule.of != kind) continue;
      std::vector<int>& held = held_[rule.until];
      held.insert(held.end(), reads.begin(), reads.end());
    }
    return std::exchange(held_[kind], {});
  }

 private:
  std::vector<cost::HeldInputs> rules_;
  std::map<std::string, std::vector<int>> held_;  ///< by the kind that lets them go
};

}  // namespace stratagem::lowering

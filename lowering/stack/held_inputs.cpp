// Collects slots by the operator after which they may be freed.
#include "lowering/stack/held_inputs.hpp"

#include <utility>

namespace stratagem::lowering {

std::vector<int> HeldSlots::pass(const std::string& kind, const std::vector<int>& reads) {
  for (const cost::HeldInputs& rule : rules_) {
    if (rule.of != kind) continue;
    std::vector<int>& held = held_[rule.until];
    held.insert(held.end(), reads.begin(), reads.end());
  }
  return std::exchange(held_[kind], {});
}

}  // namespace stratagem::lowering

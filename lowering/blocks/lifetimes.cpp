// Finds the first and last use of every slot.
#include "lowering/blocks/lifetimes.hpp"

#include <vector>

namespace stratagem::lowering {
namespace {

struct Use {
  int first = -1;
  int last = -1;
};

std::vector<Use> uses_of_slots(const program::Block& block) {
  std::vector<Use> uses(block.slots.size());
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    for (const auto* slots : {&block.tasks[t].reads, &block.tasks[t].writes}) {
      for (const int slot : *slots) {
        if (uses[slot].first < 0) uses[slot].first = static_cast<int>(t);
        uses[slot].last = static_cast<int>(t);
      }
    }
  }
  return uses;
}

}  // namespace

void set_lifetimes(program::Block& block, const std::set<int>& external,
                   const std::set<int>& survivors) {
  if (block.tasks.empty()) return;
  const std::vector<Use> uses = uses_of_slots(block);
  for (int slot = 0; slot < static_cast<int>(uses.size()); ++slot) {
    const bool used = uses[slot].first >= 0;
    if (used && !external.contains(slot)) block.tasks[uses[slot].first].allocates.push_back(slot);
    if (survivors.contains(slot)) continue;
    (used ? block.tasks[uses[slot].last] : block.tasks.back()).frees.push_back(slot);
  }
}

}  // namespace stratagem::lowering

// Finds the first and last use of every slot.
#include "lowering/blocks/lifetimes.hpp"

#include "lowering/blocks/last_uses.hpp"

namespace stratagem::lowering {

void set_lifetimes(program::Block& block, const std::set<int>& external,
                   const std::set<int>& survivors) {
  if (block.tasks.empty()) return;
  const std::map<int, std::vector<int>> uses = uses_by_slot(block);
  for (int slot = 0; slot < static_cast<int>(block.slots.size()); ++slot) {
    const auto used = uses.find(slot);
    if (used != uses.end() && !external.contains(slot))
      block.tasks[used->second.front()].allocates.push_back(slot);
    if (survivors.contains(slot)) continue;
    (used == uses.end() ? block.tasks.back() : block.tasks[used->second.back()])
        .frees.push_back(slot);
  }
}

}  // namespace stratagem::lowering

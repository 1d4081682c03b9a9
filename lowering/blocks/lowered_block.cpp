// Turns a distribution on one copy of a stage into a border, which holds on any, and back.
#include "lowering/blocks/lowered_block.hpp"

namespace stratagem::lowering {

Border border_of(const placement::Distribution& distribution, const placement::Grid& grid,
                 program::Category category) {
  if (grid.listed.empty()) return {distribution.front().part.layout, category};
  Border border{{}, category};
  for (const int device : grid.listed) {
    const placement::Part* part = part_on(distribution, device);
    border.masks.push_back(part == nullptr ? std::nullopt : part->mask);
  }
  return border;
}

placement::Distribution distribution_at(const Border& border, const placement::Grid& grid) {
  if (border.masks.empty()) return {{grid.first_device, {border.layout}}};
  placement::Distribution result;
  for (std::size_t i = 0; i < border.masks.size(); ++i) {
    if (border.masks[i]) result.push_back({grid.listed[i], {.mask = border.masks[i]}});
  }
  return result;
}

}  // namespace stratagem::lowering

// From devices to positions and back.
#include "lowering/blocks/border.hpp"

namespace stratagem::lowering {

using placement::Distribution;
using placement::Grid;

Border border_of(const Distribution& distribution, const Grid& grid, program::Category category) {
  if (grid.listed.empty()) return {distribution.front().part.layout, category};
  Border border{{}, category};
  for (const int device : grid.listed) {
    const placement::Part* part = part_on(distribution, device);
    border.masks.push_back(part == nullptr ? std::nullopt : part->mask);
  }
  return border;
}

Distribution distribution_at(const Border& border, const Grid& grid) {
  if (border.masks.empty()) return {{grid.first_device, {border.layout}}};
  Distribution result;
  for (std::size_t i = 0; i < border.masks.size(); ++i) {
    if (border.masks[i]) result.push_back({grid.listed[i], {.mask = border.masks[i]}});
  }
  return result;
}

}  // namespace stratagem::lowering

// By the coordinates of a device on its grids, or by the masks that the program gives it.
#include "execute/regions.hpp"

#include <algorithm>

namespace stratagem::execute {

Regions::Regions(const program::Program& program, const model::Graph& graph, int device)
    : program_(program), graph_(graph), device_(device) {
  for (const placement::Grid& grid : program.grids) {
    const std::vector<int> devices = grid.devices();
    const bool here = std::ranges::binary_search(devices, device);
    coordinates_.push_back(here ? grid.coordinates(grid.position(device)) : std::vector<int>{});
  }
  const program::Sequence& sequence = program.sequences[program.devices[device].sequence];
  for (const program::Resident& resident : sequence.residents) {
    if (resident.tensor < 0 || resident.category != program::Category::parameters) continue;
    for (const model::TensorId each : {resident.tensor, graph.gradient_of[resident.tensor]}) {
      if (resident.masks.empty()) {
        grid_of_resident_[each] = resident.grid;
      } else {
        in_parts_.insert(each);
      }
    }
  }
}

Region Regions::on(const program::Call& call, const program::Operand& operand, std::size_t member,
                   int device) const {
  const model::TensorId id = tensor(call, operand);
  Region region;
  if (!operand.masks.empty()) {
    region = all_of(operand.masks[member]);
  } else {
    const auto found = grid_of_resident_.find(id);
    const int on = found == grid_of_resident_.end() ? call.grid : found->second;
    const placement::Grid& grid = program_.grids[on];
    region =
        region_of(operand, graph_.tensors[id].shape, grid,
                  device == device_ ? coordinates_[on] : grid.coordinates(grid.position(device)));
  }
  if (in_parts_.contains(id)) region.mask.value = {};  // terms of a sum, however many
  return region;
}

}  // namespace stratagem::execute

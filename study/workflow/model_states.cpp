// Sums residents by device, and compares where parameters lie.
#include "study/workflow/model_states.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::study {
namespace {

using program::Category;
using program::Resident;

bool stays(const Resident& resident) {
  return resident.place == program::Residence::device && (!resident.span || resident.until_next);
}

/// Where the buffer of a device lies in its tensor: a mask, or one that its layout gives.
ParameterPart part_of(const program::Program& program, const Resident& resident,
                      const model::Tensor& tensor, int device) {
  ParameterPart part{.shape = tensor.shape, .type = tensor.type, .bytes = resident.bytes};
  if (!resident.masks.empty()) {
    part.mask = resident.masks.front();
    return part;
  }
  const placement::Grid& grid = program.grids[resident.grid];
  for (const int axis : resident.shards) part.share /= grid.axes[axis].size;
  part.mask =
      mask_at(resident.layout, tensor.shape, grid.sizes(), grid.coordinates(grid.position(device)));
  return part;
}

Bytes used_by(const Simulated& simulated, int sequence) {
  Bytes most;
  for (const sim::DeviceMemory& device : simulated.outcome.devices) {
    if (std::ranges::count(device.sequences, sequence) > 0) most = std::max(most, device.used());
  }
  return most;
}

/// A name under which two tables have different values, or only one of them has any; "" if there is
/// none.
template <typename Table>
std::string first_difference(const Table& one, const Table& other) {
  for (const auto& [some, others] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    for (const auto& [name, value] : *some) {
      const auto found = others->find(name);
      if (found == others->end() || found->second != value) return name;
    }
  }
  return "";
}

}  // namespace

ModelStates states_of(const Run& run, const Simulated& simulated) {
  const program::Program& program = simulated.program;
  ModelStates states;
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    const int sequence = program.devices[device].sequence;
    Bytes kept, caches;
    std::map<std::string, ParameterPart>& parts = states.parameters.emplace_back();
    for (const Resident& resident : program.sequences[sequence].residents) {
      if (!stays(resident) || !is_resident(resident.category)) continue;
      (resident.category == Category::caches ? caches : kept) += resident.bytes;
      if (resident.category != Category::parameters || resident.tensor < 0) continue;
      const model::Tensor& tensor = run.graph->tensors[resident.tensor];
      parts.emplace(tensor.name, part_of(program, resident, tensor, static_cast<int>(device)));
    }
    states.kept.push_back(kept);
    states.caches.push_back(caches);
    states.used.push_back(used_by(simulated, sequence));
  }
  return states;
}

std::string different_parameter(const ModelStates& one, const ModelStates& other) {
  const auto all_of = [](const ModelStates& states) {
    std::map<std::string, std::pair<std::vector<std::int64_t>, model::DataType>> all;
    for (const auto& parts : states.parameters)
      for (const auto& [name, part] : parts) all.emplace(name, std::pair(part.shape, part.type));
    return all;
  };
  return first_difference(all_of(one), all_of(other));
}

std::string divided_differently(const ModelStates& one, const ModelStates& other) {
  for (std::size_t device = 0; device < one.parameters.size(); ++device) {
    const std::string name = first_difference(one.parameters[device], other.parameters[device]);
    if (!name.empty()) return name;
  }
  return "";
}

}  // namespace stratagem::study

// What exists before an iteration begins: groups of ranks, and the weights.
#include <algorithm>
#include <span>
#include <utility>

#include "execute/initial.hpp"
#include "execute/interpreter.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {

using program::Operand;

/// In one order on all ranks.
template <typename T>
void Interpreter<T>::create_groups() {
  for (const program::Communicator& communicator : program_.communicators) {
    const bool member = std::ranges::count(communicator.ranks, device_) > 0;
    communicators_.push_back(member ? world_.group(communicator.ranks) : nullptr);
  }
  posts_.resize(communicators_.size());
}

template <typename T>
void Interpreter<T>::create_parameters() {
  const int sequence = program_.devices[device_].sequence;
  const std::vector<program::Resident>& residents = program_.sequences[sequence].residents;
  for (std::size_t i = 0; i < residents.size(); ++i) {
    const program::Resident& resident = residents[i];
    if (const int buffer = place_of(buffers_.resident(static_cast<int>(i))); buffer >= 0)
      resident_buffers_[resident.tensor] = buffer;
    if (resident.tensor >= 0 && resident.category == program::Category::parameters)
      create_parameter(resident);
  }
}

/// With a place for each of its versions.
template <typename T>
void Interpreter<T>::create_parameter(const program::Resident& resident) {
  const model::Tensor& tensor = graph_.tensors[resident.tensor];
  for (const model::TensorId each : {resident.tensor, graph_.gradient_of[resident.tensor]}) {
    if (resident.masks.empty()) {
      grid_of_resident_[each] = resident.grid;
    } else {
      in_parts_.insert(each);
    }
  }
  const Operand operand{
      .layout = resident.layout, .shards = resident.shards, .masks = resident.masks};
  const Region region = region_of(operand, tensor.shape, program_.grids, resident.grid, device_);
  const Shared<T> value = this->resident(resident.tensor, region);
  std::vector<Host> room;
  Value<Host> seen{.region = region, .data = Elements<Host>(engine_->place(*value, room))};
  initialize(graph_, resident.tensor, settings_.seed, seen);
  engine_->close(seen.data, *value);
  parameters_[resident.tensor] = value;
  if (resident.versions < 2 || value->buffer < 0) return;
  std::vector<Shared<T>> places = {value};
  const auto bytes = static_cast<std::size_t>(region.size()) * sizeof(T);
  for (int i = 1; i < resident.versions; ++i) {
    const std::size_t offset = bytes * places.size();
    std::byte* at = arena_.hold(value->buffer, offset + bytes) + offset;
    places.push_back(std::make_shared<Value<T>>(*value));
    places.back()->data = Elements<T>(std::span<T>(reinterpret_cast<T*>(at), value->data.size()));
  }
  versions_.keep(resident.tensor, std::move(places));
}

/// Weights and their gradients lie where the device has them, whatever call comes by.
template <typename T>
int Interpreter<T>::grid_of(model::TensorId tensor, const program::Call& call) const {
  const auto found = grid_of_resident_.find(tensor);
  return found == grid_of_resident_.end() ? call.grid : found->second;
}

#define INSTANTIATE(T)                                                      \
  template void Interpreter<T>::create_groups();                            \
  template void Interpreter<T>::create_parameters();                        \
  template void Interpreter<T>::create_parameter(const program::Resident&); \
  template int Interpreter<T>::grid_of(model::TensorId, const program::Call&) const;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(kernels::Half)
INSTANTIATE(kernels::BFloat16)
#undef INSTANTIATE

}  // namespace stratagem::execute

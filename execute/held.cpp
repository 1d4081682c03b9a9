// Values in the arena, by the buffers of the program.
#include "execute/held.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "execute/initial.hpp"
#include "execute/rounds.hpp"
#include "execute/types.hpp"

namespace stratagem::execute {

using model::Role;
using model::TensorId;
using program::Operand;
using program::Resident;

template <typename T>
Held<T>::Held(const program::Program& program, const model::Graph& graph, const Regions& regions,
              int device, std::uint64_t seed, Engine<T>& engine)
    : graph_(graph),
      regions_(regions),
      engine_(engine),
      buffers_(program, program.sequences[program.devices[device].sequence]),
      arena_(pack_buffers(program, graph, device, sizes_of<T>()), engine) {
  const program::Sequence& sequence = program.sequences[program.devices[device].sequence];
  const bool delayed = delays_steps(program, sequence);
  for (std::size_t i = 0; i < sequence.residents.size(); ++i) {
    const Resident& resident = sequence.residents[i];
    if (const int buffer = place_of(0, buffers_.resident(static_cast<int>(i))); buffer >= 0)
      resident_buffers_[resident.tensor] = buffer;
    if (resident.tensor < 0 || resident.category != program::Category::parameters) continue;
    const Operand all{.tensor = resident.tensor,
                      .layout = resident.layout,
                      .shards = resident.shards,
                      .masks = resident.masks};
    create_parameter(resident, regions.of({.grid = resident.grid}, all), seed);
    if (delayed && graph.gradient_of[resident.tensor] >= 0) keep_next(resident.tensor);
  }
}

/// With a place for each of its versions.
template <typename T>
void Held<T>::create_parameter(const Resident& resident, const Region& region, std::uint64_t seed) {
  using Host = OnHost<T>;
  const Shared<T> value = this->resident(resident.tensor, region);
  std::vector<Host> room;
  Value<Host> seen{.region = region, .data = Elements<Host>(engine_.place(*value, room))};
  initialize(graph_, resident.tensor, seed, seen);
  engine_.close(seen.data, *value);
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

/// What a step on the host makes waits there until the iteration beside it has ended.
template <typename T>
void Held<T>::keep_next(TensorId parameter) {
  const Shared<T>& now = parameters_.at(parameter);
  versions_.keep(parameter, {now, zeros(engine_, List::data, now->region)});
}

template <typename T>
void Held<T>::begin(std::size_t overlapping) {
  arena_.begin_peak();
  values_.assign(overlapping, std::vector<Shared<T>>(buffers_.count()));
}

template <typename T>
void Held<T>::end() {
  values_.clear();
  gradients_.clear();
}

template <typename T>
Shared<T> Held<T>::of(const RunningCall& call, const Operand& operand) const {
  const TensorId tensor = regions_.tensor(call.call, operand);
  Shared<T> found;
  if (operand.slot >= 0) {
    const int buffer = buffers_.of(call.number, operand.slot);
    if (buffer >= 0) found = values_[call.iteration % values_.size()][buffer];
  } else {
    const auto& residents =
        graph_.tensors[tensor].role == Role::parameter ? parameters_ : gradients_;
    if (const auto here = residents.find(tensor); here != residents.end()) found = here->second;
  }
  if (!found) throw BrokenPromise(graph_.tensors[tensor].name + " is there when it is read");
  return found;
}

template <typename T>
Shared<T> Held<T>::read_by_operator(const RunningCall& call, const Operand& operand) const {
  const TensorId tensor = regions_.tensor(call.call, operand);
  if (operand.slot >= 0 || !versions_.has(tensor)) return of(call, operand);
  const std::uint64_t behind = call.call.versions_behind;
  return versions_.at(tensor, call.before + std::max(call.iteration, behind) - behind);
}

template <typename T>
Value<T>& Held<T>::to_step(TensorId parameter) {
  if (versions_.has(parameter)) parameters_[parameter] = versions_.begin_step(engine_, parameter);
  return *parameters_.at(parameter);
}

/// The buffer of the arena.
template <typename T>
int Held<T>::place_of(std::uint64_t iteration, int buffer) const {
  const std::vector<std::vector<int>>& places = arena_.packing().buffer_of;
  return places[iteration % places.size()][buffer];
}

/// A value in a buffer of the arena, with whatever lies there. Where the program has it on the host
/// or its drives (-1), a value of zeros in memory of its own.
template <typename T>
Shared<T> Held<T>::placed(int buffer, TensorId tensor, const Region& region) {
  const List list = list_of(graph_, tensor);
  if (buffer < 0) return zeros(engine_, list, region);
  const auto size = static_cast<std::size_t>(region.size());
  std::byte* const at = arena_.hold(buffer, bytes_of<T>(list, size));
  Shared<T> value = value_in<T>(Memory(Memory(), at), list, region);  // the arena owns it
  value->buffer = buffer;
  return value;
}

/// A parameter, or a gradient that is there for good.
template <typename T>
Shared<T> Held<T>::resident(TensorId tensor, const Region& region) {
  const auto buffer = resident_buffers_.find(tensor);
  return placed(buffer == resident_buffers_.end() ? -1 : buffer->second, tensor, region);
}

template <typename T>
Shared<T> Held<T>::target(const RunningCall& call, const Operand& operand) {
  const TensorId tensor = regions_.tensor(call.call, operand);
  const Region wanted = regions_.of(call.call, operand);
  if (operand.slot < 0) {
    const bool parameter = graph_.tensors[tensor].role == Role::parameter;
    Shared<T>& value = (parameter ? parameters_ : gradients_)[tensor];
    if (!value || value->region != wanted) value = resident(tensor, wanted);
    return value;
  }
  const int buffer = buffers_.of(call.number, operand.slot);
  if (buffer < 0)
    throw BrokenPromise(graph_.tensors[tensor].name + " has a buffer when it is written");
  // In place: what was there in another layout is gone.
  Shared<T>& value = values_[call.iteration % values_.size()][buffer];
  if (!value || value->region != wanted)
    value = placed(place_of(call.iteration, buffer), tensor, wanted);
  return value;
}

template <typename T>
Shared<T> Held<T>::sum(const RunningCall& call, const Operand& operand) {
  const TensorId tensor = regions_.tensor(call.call, operand);
  Shared<T> value;
  if (operand.slot < 0) {
    value = gradients_[tensor];
  } else if (const int buffer = buffers_.of(call.number, operand.slot); buffer >= 0) {
    value = values_[call.iteration % values_.size()][buffer];
  }
  if (value && value->region != regions_.of(call.call, operand))
    throw BrokenPromise("what is added to " + graph_.tensors[tensor].name + " is of one part");
  const bool first = !value;
  value = target(call, operand);
  if (first) clear(engine_, *value);
  return value;
}

template <typename T>
Shared<T> Held<T>::free(const RunningCall& call, int buffer) {
  const int place = place_of(call.iteration, buffer);
  if (place >= 0) arena_.release(place);
  return std::exchange(values_[call.iteration % values_.size()][buffer], nullptr);
}

#define INSTANTIATE(T) template class Held<T>;
STRATAGEM_FOR_HELD_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::execute

// Tasks in the order of the program; messages leave and arrive beside them.
#include "execute/interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/input_error.hpp"
#include "execute/exchange.hpp"
#include "execute/initial.hpp"
#include "execute/loss_scale.hpp"
#include "execute/operators/application.hpp"
#include "kernels/half.hpp"

namespace stratagem::execute {

using model::Role;
using model::TensorId;
using program::Action;
using program::Call;
using program::Collective;
using program::Operand;
using program::Operation;
using program::Task;

namespace {

/// Does an operator write all of its result, whatever lies there?
bool overwrites(const model::Operator& op) {
  return op.kind == model::OpKind::contraction && op.pass != model::Pass::weight_gradient;
}

}  // namespace

/// A call on its way.
template <typename T>
struct Interpreter<T>::CallState {
  const Call& call;
  int number = 0;  ///< of the call in its sequence

  [[nodiscard]] TensorId tensor(const program::Program& program, int named) const {
    return tensor_of(program, call, named);
  }
};

template <typename T>
Interpreter<T>::Interpreter(const program::Program& program, const model::Graph& graph,
                            const Settings& settings, kernels::Communicator& world,
                            std::unique_ptr<Engine<T>> engine)
    : program_(program),
      graph_(graph),
      settings_(settings),
      world_(world),
      place_(settings.place == nullptr ? own_place_ : *settings.place),
      engine_(std::move(engine)),
      device_(world.rank()),
      buffers_(program, program.sequences[program.devices[device_].sequence]),
      arena_(placement(program, graph, device_, sizes_of<T>()), *engine_),
      states_(*engine_, arena_),
      messages_(*engine_),
      loss_scale_(loss_scale<T>(loss_weight())) {
  expects(world.size() == static_cast<int>(program.devices.size()),
          "every device of a program has a rank");
  for (const placement::Grid& grid : program.grids) {
    const std::vector<int> devices = grid.devices();
    const bool here = std::ranges::binary_search(devices, device_);
    coordinates_.push_back(here ? grid.coordinates(grid.position(device_)) : std::vector<int>{});
  }
  create_groups();
  create_parameters();
}

template <typename T>
void Interpreter<T>::run(const program::Launch& launch) {
  const Call call = program_.sequences[program_.devices[device_].sequence].calls[launch.call];
  const std::vector<Task>& tasks = program_.blocks[call.block].tasks;
  CallState state{.call = call, .number = launch.call};
  for (int task = launch.first; task < launch.end; ++task) {
    engine_->begin(recording_, task_);
    run(state, tasks[task]);
    buffers_.each_freed({launch.call, task}, [&](int buffer) { free(buffer); });
    engine_->end(recording_, task_++);
  }
}

template <typename T>
void Interpreter<T>::run(CallState& state, const Task& task) {
  const auto* work = std::get_if<Collective>(&task.work);
  const Call& call = state.call;
  const bool whole = call.segment < 0;
  place_.enter(program_.blocks[call.block], whole ? nullptr : &graph_.segments[call.segment].name,
               task, whole ? -1 : call.cell.micro_batch, iteration_);
  for (const Operation& operation : task.operations) {
    switch (operation.action) {
      case Action::apply:
        apply(state, task, operation);
        break;
      case Action::convert:
        convert(state, *work, operation);
        break;
      case Action::select:
        select(state, operation);
        break;
      case Action::join:
        join(state, operation);
        break;
      case Action::transfer:
        transfer(state, *work, operation);
        break;
      case Action::step:
        step(state, operation);
        break;
    }
  }
}

template <typename T>
void Interpreter<T>::apply(CallState& state, const Task& task, const Operation& operation) {
  const model::Segment& segment = graph_.segments[state.call.segment];
  const auto forward = static_cast<int>(segment.forward.size());
  const model::OpId id = operation.op < forward ? segment.forward[operation.op]
                                                : segment.backward[operation.op - forward];
  const auto micro_batch = static_cast<std::uint64_t>(state.call.cell.micro_batch);
  Application<T> application{
      .graph = graph_,
      .op = graph_.operators[id],
      .inputs = {},
      .outputs = {},
      .random = {.seed = settings_.seed,
                 .stream = iteration_ * settings_.micro_batches + micro_batch},
      .dropout = settings_.dropout,
      .loss_weight = loss_weight() * loss_scale_};
  for (const Operand& operand : operation.inputs)
    application.inputs.push_back(read(state, operand));
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    application.outputs.push_back(target(state, operation, i));
    if (operation.adds) continue;
    const Value<T>& result = *application.outputs.back();
    for (const Shared<T>& input : application.inputs)
      expects(!same_place(*input, result), "an operator writes where it does not read");
    if (!overwrites(application.op)) clear(*engine_, result);
  }
  engine_->apply(application);
  if (settings_.finds_faults) finite_.look(*engine_, application, place_);
  const bool loss = application.op.outputs[0] == graph_.loss;
  if (loss && application.op.pass == model::Pass::forward && !task.recomputed)
    note_loss(state, operation, *application.outputs[0]);
}

/// Ranks that have the same rows share out their weight.
template <typename T>
void Interpreter<T>::note_loss(const CallState& state, const Operation& operation,
                               const Value<T>& values) {
  const Operand& operand = operation.outputs[0];
  double replicas = operation.replicas;
  for (std::size_t axis = 0; axis < operand.layout.size(); ++axis) {
    if (operand.layout[axis].dim == placement::AxisRole::replica)
      replicas *= program_.grids[state.call.grid].axes[axis].size;
  }
  engine_->note(values, loss_weight() / replicas, static_cast<std::size_t>(iteration_ - first_));
}

template <typename T>
double Interpreter<T>::loss_weight() const {
  return 1 / (static_cast<double>(model::element_count(graph_.tensors[graph_.loss])) *
              settings_.micro_batches);
}

template <typename T>
void Interpreter<T>::convert(CallState& state, const Collective& work, const Operation& operation) {
  Post<T>& members = post(work.group);
  const std::vector<int>& ranks =
      program_.communicators[program_.devices[device_].groups[work.group]].ranks;
  Exchange<T> exchange;
  const auto mine = [&](Operand operand) {
    if (!operand.masks.empty()) operand.masks = {operand.masks[members.rank()]};
    return operand;
  };
  for (const Operand& operand : operation.inputs)
    exchange.inputs.push_back(read(state, mine(operand)));
  exchange.before = [&](std::size_t i, int member) {
    return region_on(state, operation.inputs[i], member, ranks[member]);
  };
  exchange.after = [&](std::size_t i, int member) {
    return region_on(state, operation.outputs[i], member, ranks[member]);
  };
  for (const Operand& operand : operation.outputs)
    exchange.outputs.push_back(operation.adds ? sum(state, mine(operand))
                                              : target(state, mine(operand)));
  exchange.adds = operation.adds;
  execute::run(*engine_, work, exchange, members);
}

template <typename T>
void Interpreter<T>::select(CallState& state, const Operation& operation) {
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    const bool stays = operation.outputs[i].slot < 0 && operation.inputs[i].slot < 0;
    const Shared<T> whole = read(state, operation.inputs[i]);
    if (stays) continue;
    const Shared<T> part = view(*engine_, whole, region(state, operation.outputs[i]));
    const Shared<T> result = target(state, operation, i);
    if (operation.adds) {
      engine_->add(*part, *result);
    } else if (!same_place(*part, *result)) {
      engine_->copy(*part, *result);
    }
  }
}

/// Inputs are of the same elements, or side by side.
template <typename T>
void Interpreter<T>::join(CallState& state, const Operation& operation) {
  const Shared<T> result = target(state, operation.outputs[0]);
  clear(*engine_, *result);
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    const bool adds = i > 0 && operation.adds;
    engine_->put(*read(state, operation.inputs[i]), *result, adds, operation.combine);
  }
}

template <typename T>
void Interpreter<T>::transfer(CallState& state, const Collective& work,
                              const Operation& operation) {
  kernels::Communicator& pair = group(work.group);
  for (const Operand& operand : operation.inputs) messages_.send(pair, *read(state, operand));
  for (std::size_t i = 0; i < operation.outputs.size(); ++i)
    messages_.receive(pair, target(state, operation, i), task_);
}

template <typename T>
void Interpreter<T>::step(CallState& state, const Operation& operation) {
  const Shared<T> gradient = read(state, operation.inputs[0]);
  const TensorId id = state.tensor(program_, operation.outputs[0].tensor);
  const Region stepped = region(state, operation.outputs[0]);
  if (watch_) watch_(id, *unscaled(engine_->on_host(gradient), loss_scale_));
  if (versions_.has(id)) parameters_[id] = versions_.begin_step(*engine_, id);
  Value<T>& parameter = *parameters_.at(id);
  expects(shows(parameter.region, stepped), "a rank steps what it has of a parameter");
  const auto size = static_cast<std::size_t>(stepped.size());
  const auto [states, fresh] = states_.of(id, size);
  kernels::Adam adam = settings_.optimizer;
  adam.step = static_cast<std::int64_t>(iteration_) + 1;
  adam.gradient_scale = loss_scale_;
  T* const begin = parameter.data.data() + (stepped.begin - parameter.region.begin);
  engine_->step({.settings = adam,
                 .gradient = std::span<T>(gradient->data),
                 .parameter = std::span<T>(begin, size),
                 .momentum = std::span<Host>(states->momentum),
                 .variance = std::span<Host>(states->variance),
                 .main = std::span<Host>(states->main),
                 .first = fresh});
  if (without_flush()) gradients_.erase(state.tensor(program_, operation.inputs[0].tensor));
}

// ---- where values are

template <typename T>
Region Interpreter<T>::region(const CallState& state, const Operand& operand) const {
  return region_on(state, operand, 0, device_);
}

template <typename T>
Region Interpreter<T>::region_on(const CallState& state, const Operand& operand, std::size_t member,
                                 int device) const {
  const TensorId tensor = state.tensor(program_, operand.tensor);
  Region region;
  if (!operand.masks.empty()) {
    region = all_of(operand.masks[member]);
  } else {
    const int on = grid_of(tensor, state.call);
    const placement::Grid& grid = program_.grids[on];
    region =
        region_of(operand, graph_.tensors[tensor].shape, grid,
                  device == device_ ? coordinates_[on] : grid.coordinates(grid.position(device)));
  }
  if (in_parts_.contains(tensor)) region.mask.value = {};  // terms of a sum, however many
  return region;
}

template <typename T>
Shared<T> Interpreter<T>::read(CallState& state, const Operand& operand) {
  const Region wanted = region(state, operand);
  const TensorId tensor = state.tensor(program_, operand.tensor);
  if (graph_.tensors[tensor].role == Role::input) {
    const std::uint64_t micro_batch =
        iteration_ * settings_.micro_batches + state.call.cell.micro_batch;
    return engine_->from_host(input<Host>(graph_, tensor, wanted, settings_.seed, micro_batch,
                                          loss_weight() * loss_scale_),
                              list_of(graph_, tensor));
  }
  const Shared<T> whole = held(state, operand);
  if (arrive(whole.get())) engine_->begin(recording_, task_);  // what waited has not begun before
  return view(*engine_, whole, operand.masks.empty() ? wanted : named_as(wanted, whole->region));
}

template <typename T>
Shared<T> Interpreter<T>::held(const CallState& state, const Operand& operand) {
  const TensorId tensor = state.tensor(program_, operand.tensor);
  if (operand.slot < 0) {
    const bool parameter = graph_.tensors[tensor].role == Role::parameter;
    const std::uint64_t behind = state.call.versions_behind;
    if (parameter && versions_.has(tensor))
      return versions_.at(tensor, std::max(iteration_, first_ + behind) - behind);
    const auto& residents = parameter ? parameters_ : gradients_;
    const auto found = residents.find(tensor);
    if (found == residents.end())
      throw BrokenPromise(graph_.tensors[tensor].name + " is there when it is read");
    return found->second;
  }
  const int buffer = buffers_.of(state.number, operand.slot);
  if (buffer < 0 || !value_of(buffer))
    throw BrokenPromise(graph_.tensors[tensor].name + " is there when it is read");
  return value_of(buffer);
}

/// What a buffer of the iteration that runs holds; null: not written yet.
template <typename T>
Shared<T>& Interpreter<T>::value_of(int buffer) {
  return values_[(iteration_ - first_) % values_.size()][buffer];
}

/// The buffer of the arena.
template <typename T>
int Interpreter<T>::place_of(int buffer) const {
  const std::vector<std::vector<int>>& places = arena_.placement().buffer_of;
  return places[(iteration_ - first_) % places.size()][buffer];
}

/// A value in a buffer of the arena, with whatever lies there. Where the program has it on the host
/// or its drives (-1), a value of zeros in memory of its own.
template <typename T>
Shared<T> Interpreter<T>::placed(int buffer, TensorId tensor, const Region& region) {
  const List list = list_of(graph_, tensor);
  if (buffer < 0) return zeros(*engine_, list, region);
  const auto size = static_cast<std::size_t>(region.size());
  std::byte* const at = arena_.hold(buffer, bytes_of<T>(list, size));
  Shared<T> value = value_in<T>(Memory(Memory(), at), list, region);  // the arena owns it
  value->buffer = buffer;
  return value;
}

/// A parameter, or a gradient that is there for good.
template <typename T>
Shared<T> Interpreter<T>::resident(TensorId tensor, const Region& region) {
  const auto buffer = resident_buffers_.find(tensor);
  return placed(buffer == resident_buffers_.end() ? -1 : buffer->second, tensor, region);
}

template <typename T>
Shared<T> Interpreter<T>::target(CallState& state, const Operand& operand) {
  const TensorId tensor = state.tensor(program_, operand.tensor);
  const Region wanted = region(state, operand);
  if (operand.slot < 0) {
    const bool parameter = graph_.tensors[tensor].role == Role::parameter;
    Shared<T>& value = (parameter ? parameters_ : gradients_)[tensor];
    if (!value || value->region != wanted) value = resident(tensor, wanted);
    return value;
  }
  const int buffer = buffers_.of(state.number, operand.slot);
  if (buffer < 0)
    throw BrokenPromise(graph_.tensors[tensor].name + " has a buffer when it is written");
  Shared<T>& value = value_of(buffer);  // in place: what was there in another layout is gone
  if (!value || value->region != wanted) value = placed(place_of(buffer), tensor, wanted);
  return value;
}

template <typename T>
Shared<T> Interpreter<T>::sum(CallState& state, const Operand& operand) {
  const TensorId tensor = state.tensor(program_, operand.tensor);
  const Region wanted = region(state, operand);
  Shared<T> value;
  if (operand.slot < 0) {
    value = gradients_[tensor];
  } else if (const int buffer = buffers_.of(state.number, operand.slot); buffer >= 0) {
    value = value_of(buffer);
  }
  if (value && value->region != wanted)
    throw BrokenPromise("what is added to " + graph_.tensors[tensor].name + " is of one part");
  const bool first = !value;
  value = target(state, operand);
  if (first) clear(*engine_, *value);
  return value;
}

template <typename T>
Shared<T> Interpreter<T>::target(CallState& state, const Operation& operation, std::size_t output) {
  const Operand& operand = operation.outputs[output];
  return operation.adds ? sum(state, operand) : target(state, operand);
}

/// A message that is needed is waited for.
template <typename T>
bool Interpreter<T>::arrive(const Value<T>* value) {
  const std::optional<std::size_t> task = messages_.arrive(value);
  if (task) engine_->end(recording_, *task);
  return task.has_value();
}

/// A message that was to arrive there is waited for.
template <typename T>
void Interpreter<T>::free(int buffer) {
  if (const Shared<T> value = std::exchange(value_of(buffer), nullptr)) arrive(value.get());
  if (place_of(buffer) >= 0) arena_.release(place_of(buffer));
}

template <typename T>
int Interpreter<T>::communicator(int number) const {
  const int communicator = program_.devices[device_].groups[number];
  expects(communicator >= 0 && communicators_[communicator] != nullptr,
          "a rank talks to groups that it is in");
  return communicator;
}

template <typename T>
kernels::Communicator& Interpreter<T>::group(int number) {
  return *communicators_[communicator(number)];
}

template <typename T>
Post<T>& Interpreter<T>::post(int number) {
  const int found = communicator(number);
  std::unique_ptr<Post<T>>& post = posts_[found];
  if (post == nullptr) post = engine_->post(*communicators_[found], packing_);
  return *post;
}

template class Interpreter<float>;
template class Interpreter<double>;
template class Interpreter<kernels::Half>;
template class Interpreter<kernels::BFloat16>;

}  // namespace stratagem::execute

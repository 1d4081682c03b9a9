// Tasks in the order of the program; messages leave and arrive beside them.
#include "execute/interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/input_error.hpp"
#include "execute/initial.hpp"
#include "execute/loss_scale.hpp"
#include "execute/operators/application.hpp"
#include "execute/rounds.hpp"
#include "execute/types.hpp"

namespace stratagem::execute {

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

template <typename T>
Interpreter<T>::Interpreter(const program::Program& program, const model::Graph& graph,
                            const Settings& settings, kernels::Communicator& world,
                            std::unique_ptr<Engine<T>> engine)
    : program_(program),
      graph_(graph),
      settings_(settings),
      world_(world),
      engine_(std::move(engine)),
      regions_(program, graph, world.rank()),
      held_(program, graph, regions_, world.rank(), settings.seed, *engine_),
      states_(*engine_, held_.arena()),
      groups_(program, world, *engine_),
      messages_(*engine_),
      lags_(lags_of(program, graph, sequence())) {
  expects(world.size() == static_cast<int>(program.devices.size()),
          "every device of a program has a rank");
  if (settings_.current == nullptr) settings_.current = &record_.own;
}

// ---- rounds

template <typename T>
double Interpreter<T>::iterate(const Watch& watch) {
  return overlap(1, watch).front();
}

template <typename T>
std::vector<double> Interpreter<T>::train(int iterations, const Watch& watch) {
  if (without_flush()) return overlap(iterations, watch);
  std::vector<double> losses;
  for (int i = 0; i < iterations; ++i) losses.push_back(iterate(watch));
  return losses;
}

/// Rounds until the last of the iterations has ended; the weights are those after all of them then.
template <typename T>
std::vector<double> Interpreter<T>::overlap(int iterations, const Watch& watch) {
  watch_ = watch;
  record_.ends.assign(static_cast<std::size_t>(iterations), Seconds{});
  engine_->start(record_.times, program::task_count(program_, sequence()));
  held_.begin(static_cast<std::size_t>(program_.lag) + 1);
  const int last = lags_.empty() ? 0 : *std::ranges::max_element(lags_);
  for (int round = 0; round < iterations + std::max(last, program_.lag); ++round) {
    run_round(round, iterations);
    // What was sent so many rounds ago has been received in this one.
    if (program_.lag > 0) messages_.settle(static_cast<std::size_t>(program_.lag));
  }
  for (const std::size_t task : messages_.finish()) engine_->end(record_.times, task);
  engine_->finish(record_.times);
  held_.end();
  std::vector<double> losses = engine_->noted(static_cast<std::size_t>(iterations));
  world_.all_reduce(kernels::Reduction::sum, std::span<double>(losses));
  settings_.current->leave();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (!std::isfinite(losses[i]))
      throw NotFinite(record_.finite.told(world_, losses[i], now_.first + i));
  }
  now_ = {.first = now_.first + static_cast<std::uint64_t>(iterations)};
  return losses;
}

/// Of the calls those whose iteration has begun and is one of `iterations`.
template <typename T>
void Interpreter<T>::run_round(int round, int iterations) {
  now_.task = 0;
  program::each_launch(program_, sequence(), [&](const program::Launch& launch) {
    const int of = round - lags_[launch.call];
    if (of < 0 || of >= iterations) {
      now_.task += static_cast<std::size_t>(launch.end - launch.first);
      return;
    }
    now_.iteration = static_cast<std::uint64_t>(of);
    run(launch);
    record_.ends[static_cast<std::size_t>(of)] = Seconds{record_.times.now()};
  });
}

// ---- tasks

template <typename T>
void Interpreter<T>::run(const program::Launch& launch) {
  const Call call = sequence().calls[launch.call];
  const std::vector<Task>& tasks = program_.blocks[call.block].tasks;
  const RunningCall running{
      .call = call, .number = launch.call, .iteration = now_.iteration, .before = now_.first};
  for (int task = launch.first; task < launch.end; ++task) {
    engine_->begin(record_.times, now_.task);
    run(running, tasks[task]);
    // A message that was to arrive there is waited for.
    held_.buffers().each_freed({launch.call, task}, [&](int buffer) {
      if (const Shared<T> value = held_.free(running, buffer)) arrive(value.get());
    });
    engine_->end(record_.times, now_.task++);
  }
}

template <typename T>
void Interpreter<T>::run(const RunningCall& running, const Task& task) {
  const auto* work = std::get_if<Collective>(&task.work);
  const Call& call = running.call;
  const bool whole = call.segment < 0;
  settings_.current->enter(program_.blocks[call.block],
                           whole ? nullptr : &graph_.segments[call.segment].name, task,
                           whole ? -1 : call.cell.micro_batch, iteration());
  for (const Operation& operation : task.operations) {
    switch (operation.action) {
      case Action::apply:
        apply(running, task, operation);
        break;
      case Action::convert:
        convert(running, *work, operation);
        break;
      case Action::select:
        select(running, operation);
        break;
      case Action::join:
        join(running, operation);
        break;
      case Action::transfer:
        transfer(running, *work, operation);
        break;
      case Action::step:
        step(running, operation);
        break;
    }
  }
}

template <typename T>
void Interpreter<T>::apply(const RunningCall& call, const Task& task, const Operation& operation) {
  const model::Segment& segment = graph_.segments[call.call.segment];
  const auto forward = static_cast<int>(segment.forward.size());
  const model::OpId id = operation.op < forward ? segment.forward[operation.op]
                                                : segment.backward[operation.op - forward];
  const auto micro_batch = static_cast<std::uint64_t>(call.call.cell.micro_batch);
  Application<T> application{
      .graph = graph_,
      .op = graph_.operators[id],
      .inputs = {},
      .outputs = {},
      .random = {.seed = settings_.seed,
                 .stream = iteration() * settings_.micro_batches + micro_batch},
      .dropout = settings_.dropout,
      .loss_weight = loss_weight() * loss_scale()};
  for (const Operand& operand : operation.inputs)
    application.inputs.push_back(read(call, operand, true));
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    application.outputs.push_back(target(call, operation, i));
    if (operation.adds) continue;
    const Value<T>& result = *application.outputs.back();
    for (const Shared<T>& input : application.inputs)
      expects(!same_place(*input, result), "an operator writes where it does not read");
    if (!overwrites(application.op)) clear(*engine_, result);
  }
  engine_->apply(application);
  if (settings_.finds_faults) record_.finite.look(*engine_, application, *settings_.current);
  const bool loss = application.op.outputs[0] == graph_.loss;
  if (loss && application.op.pass == model::Pass::forward && !task.recomputed)
    note_loss(call, operation, *application.outputs[0]);
}

/// Ranks that have the same rows share out their weight.
template <typename T>
void Interpreter<T>::note_loss(const RunningCall& call, const Operation& operation,
                               const Value<T>& values) {
  const Operand& operand = operation.outputs[0];
  double replicas = operation.replicas;
  for (std::size_t axis = 0; axis < operand.layout.size(); ++axis) {
    if (operand.layout[axis].dim == placement::AxisRole::replica)
      replicas *= program_.grids[call.call.grid].axes[axis].size;
  }
  engine_->note(values, loss_weight() / replicas, static_cast<std::size_t>(now_.iteration));
}

template <typename T>
double Interpreter<T>::loss_weight() const {
  return 1 / (static_cast<double>(model::element_count(graph_.tensors[graph_.loss])) *
              settings_.micro_batches);
}

template <typename T>
void Interpreter<T>::convert(const RunningCall& call, const Collective& work,
                             const Operation& operation) {
  Post<T>& members = groups_.post(work.group);
  const std::vector<int>& ranks = groups_.ranks(work.group);
  Exchange<T> exchange;
  const auto mine = [&](Operand operand) {
    if (!operand.masks.empty()) operand.masks = {operand.masks[members.rank()]};
    return operand;
  };
  for (const Operand& operand : operation.inputs)
    exchange.inputs.push_back(read(call, mine(operand)));
  exchange.before = [&](std::size_t i, int member) {
    return regions_.on(call.call, operation.inputs[i], member, ranks[member]);
  };
  exchange.after = [&](std::size_t i, int member) {
    return regions_.on(call.call, operation.outputs[i], member, ranks[member]);
  };
  for (const Operand& operand : operation.outputs)
    exchange.outputs.push_back(operation.adds ? held_.sum(call, mine(operand))
                                              : held_.target(call, mine(operand)));
  exchange.adds = operation.adds;
  execute::run(*engine_, work, exchange, members);
}

template <typename T>
void Interpreter<T>::select(const RunningCall& call, const Operation& operation) {
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    const bool stays = operation.outputs[i].slot < 0 && operation.inputs[i].slot < 0;
    const Shared<T> whole = read(call, operation.inputs[i]);
    if (stays) continue;
    const Shared<T> part = view(*engine_, whole, regions_.of(call.call, operation.outputs[i]));
    const Shared<T> result = target(call, operation, i);
    if (operation.adds) {
      engine_->add(*part, *result);
    } else if (!same_place(*part, *result)) {
      engine_->copy(*part, *result);
    }
  }
}

/// Inputs are of the same elements, or side by side.
template <typename T>
void Interpreter<T>::join(const RunningCall& call, const Operation& operation) {
  const Shared<T> result = held_.target(call, operation.outputs[0]);
  clear(*engine_, *result);
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    const bool adds = i > 0 && operation.adds;
    engine_->put(*read(call, operation.inputs[i]), *result, adds, operation.combine);
  }
}

template <typename T>
void Interpreter<T>::transfer(const RunningCall& call, const Collective& work,
                              const Operation& operation) {
  kernels::Communicator& pair = groups_[work.group];
  for (const Operand& operand : operation.inputs) messages_.send(pair, *read(call, operand));
  for (std::size_t i = 0; i < operation.outputs.size(); ++i)
    messages_.receive(pair, target(call, operation, i), now_.task);
}

template <typename T>
void Interpreter<T>::step(const RunningCall& call, const Operation& operation) {
  const Shared<T> gradient = read(call, operation.inputs[0]);
  const TensorId id = regions_.tensor(call.call, operation.outputs[0]);
  const Region stepped = regions_.of(call.call, operation.outputs[0]);
  if (watch_) watch_(id, *unscaled(engine_->on_host(gradient), loss_scale()));
  Value<T>& parameter = held_.to_step(id);
  expects(shows(parameter.region, stepped), "a rank steps what it has of a parameter");
  const auto size = static_cast<std::size_t>(stepped.size());
  const auto [states, fresh] = states_.of(id, size);
  kernels::Adam adam = settings_.optimizer;
  adam.step = static_cast<std::int64_t>(iteration()) + 1;
  adam.gradient_scale = loss_scale();
  T* const begin = parameter.data.data() + (stepped.begin - parameter.region.begin);
  engine_->step({.settings = adam,
                 .gradient = std::span<T>(gradient->data),
                 .parameter = std::span<T>(begin, size),
                 .momentum = std::span<Host>(states->momentum),
                 .variance = std::span<Host>(states->variance),
                 .main = std::span<Host>(states->main),
                 .first = fresh});
  if (without_flush()) held_.free_gradient(regions_.tensor(call.call, operation.inputs[0]));
}

// ---- values

template <typename T>
double Interpreter<T>::loss_scale() const {
  return execute::loss_scale<T>(loss_weight());
}

template <typename T>
Shared<T> Interpreter<T>::input_of_model(const RunningCall& call, TensorId tensor,
                                         const Region& region) {
  const std::uint64_t micro_batch =
      iteration() * settings_.micro_batches + call.call.cell.micro_batch;
  return engine_->from_host(input<Host>(graph_, tensor, region, settings_.seed, micro_batch,
                                        loss_weight() * loss_scale()),
                            list_of(graph_, tensor));
}

template <typename T>
Shared<T> Interpreter<T>::read(const RunningCall& call, const Operand& operand, bool by_operator) {
  const Region wanted = regions_.of(call.call, operand);
  const TensorId tensor = regions_.tensor(call.call, operand);
  if (graph_.tensors[tensor].role == model::Role::input)
    return input_of_model(call, tensor, wanted);
  const Shared<T> whole =
      by_operator ? held_.read_by_operator(call, operand) : held_.of(call, operand);
  // What waited has not begun before.
  if (arrive(whole.get())) engine_->begin(record_.times, now_.task);
  return view(*engine_, whole, operand.masks.empty() ? wanted : named_as(wanted, whole->region));
}

template <typename T>
Shared<T> Interpreter<T>::target(const RunningCall& call, const Operation& operation,
                                 std::size_t output) {
  const Operand& operand = operation.outputs[output];
  return operation.adds ? held_.sum(call, operand) : held_.target(call, operand);
}

/// A message that is needed is waited for.
template <typename T>
bool Interpreter<T>::arrive(const Value<T>* value) {
  const std::optional<std::size_t> task = messages_.arrive(value);
  if (task) engine_->end(record_.times, *task);
  return task.has_value();
}

#define INSTANTIATE(T) template class Interpreter<T>;
STRATAGEM_FOR_HELD_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::execute

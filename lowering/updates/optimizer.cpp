// Every parameter steps once per stage that holds it.
#include "lowering/updates/optimizer.hpp"

#include <map>
#include <set>
#include <utility>

#include "lowering/stack/casts.hpp"
#include "lowering/stack/extra_states.hpp"
#include "lowering/stack/kernels.hpp"
#include "lowering/stages/shards.hpp"
#include "lowering/updates/caches.hpp"
#include "lowering/updates/gather_buffers.hpp"
#include "lowering/updates/kept_outputs.hpp"
#include "model/cast_products.hpp"

namespace stratagem::lowering {

using program::Category;
using program::Operand;
using program::Operation;
using program::Residence;
using program::Resident;
using strategies::Keep;
using strategies::Plan;
using With = cost::ExtraState::With;

namespace {

using model::TensorId;

/// What an optimizer keeps of a parameter from step to step.
Bytes kept_states(const cost::Training& training, const cost::Stepped& steps) {
  Bytes bytes = cost::master_bytes(training.precision, steps);
  for (const cost::OptimizerState& state : training.optimizer.states)
    bytes += cost::state_bytes(state, steps);
  return bytes;
}

/// Deals launches and waits to the steps of a device. Of a flat share they are those of one tensor
/// of as many as there are ranks, so that `ranks` steps together have those of one.
class DealtKernels {
 public:
  explicit DealtKernels(const cost::OperatorKernels& rule)
      : flat_(rule.flat_shares), synchronizations_(rule.synchronizations) {}

  /// The next step, of a tensor that so many ranks step a share each of.
  void deal(program::Task& task, int ranks) {
    auto& kernel = std::get<cost::Kernel>(task.work);
    task.synchronizations = synchronizations_;
    if (!flat_ || ranks == 1) return;
    const int step = steps_[ranks]++;
    const auto share = [&](int all) { return (step + 1) * all / ranks - step * all / ranks; };
    kernel.launches = share(kernel.launches);
    task.synchronizations = share(synchronizations_);
  }

 private:
  bool flat_;
  int synchronizations_;
  std::map<int, int> steps_;  ///< dealt so far, by number of ranks
};

/// A parameter's task in a step block; `place` is its place in the segment's table, and `ranks`
/// step a share of it each.
void add_step(StepBlock& step, const model::Tensor& tensor, const std::string& prefix, int place,
              const cost::Stepped& stepped, int ranks, Operation values,
              const SequenceContext& context, DealtKernels& kernels) {
  const bool on_host = context.plan.steps.on_host;
  const Bytes bytes = stepped.elements * model::size_of(tensor.type);
  const std::string name =
      tensor.name.starts_with(prefix) ? tensor.name.substr(prefix.size()) : tensor.name;
  const auto slot = static_cast<int>(step.block.slots.size());
  step.block.slots.push_back({name, place, bytes, Category::parameters});
  for (const Operand& operand : values.inputs) step.key += " " + std::to_string(operand.tensor);
  for (const Operand& operand : values.outputs) {
    for (const placement::AxisRole& role : operand.layout)
      step.key += (role.inner ? ",inner " : ",") + std::to_string(role.dim);
    for (const int axis : operand.shards) step.key += "/" + std::to_string(axis);
    for (const placement::Mask& mask : operand.masks) {
      for (const placement::Range& range : mask.ranges)
        step.key += "[" + std::to_string(range.begin) + "," + std::to_string(range.end);
    }
  }
  program::Task task{};
  task.name = name + ".step";
  task.work = on_host ? host_optimizer_kernel(stepped, context.training, context.stack)
                      : optimizer_kernel(stepped, context.training, context.stack);
  if (on_host) task.stream = program::Stream::host;
  if (!on_host) task.reads = task.writes = {slot};
  task.operations = {std::move(values)};
  if (on_host) {
    task.synchronizations = 1;  // the thread that launches kernels steps, too
  } else {
    kernels.deal(task, ranks);
    step.key += " " + std::to_string(std::get<cost::Kernel>(task.work).launches) + "," +
                std::to_string(task.synchronizations);
  }
  step.bytes += bytes;
  step.states += kept_states(context.training, stepped);
  if (master_bytes(context.training.precision, stepped) <= Bytes{}) step.without_master += bytes;
  step.block.tasks.push_back(std::move(task));
  step.key += " " + std::to_string(place) + ":" + name + std::to_string(bytes.value);
  if (is_factored(context.training.optimizer)) {
    for (const std::int64_t size : stepped.shape) step.key += "x" + std::to_string(size);
  }
}

/// What each device of a class steps of a parameter.
cost::Stepped stepped(const model::Tensor& tensor, const LocalHolding& local) {
  return {.shape = local.shape,
          .elements = local.step.bytes / model::size_of(tensor.type),
          .type = tensor.type};
}

/// What a device has of a parameter of which every device has a part of its own; else none.
std::vector<placement::Mask> own_part(const SequenceContext& context, int device_class,
                                      const LocalHolding& local) {
  if (local.holding->masks.empty()) return {};
  return {local.holding->masks.at(context.stages.device_classes()[device_class].devices.front())};
}

/// The gradient and the parameter, or their shards.
Operation step_values(const SequenceContext& context, int device_class, int segment,
                      TensorId parameter, const LocalHolding& local) {
  const auto& places = context.stages.facts(segment).place;
  Operand operand{.layout = local.holding->layout,
                  .shards = local.step.axes,
                  .masks = own_part(context, device_class, local)};
  Operation values{
      .action = program::Action::step, .inputs = {operand, operand}, .outputs = {operand}};
  values.inputs[0].tensor = places.at(context.plan.graph().gradient_of[parameter]);
  values.inputs[1].tensor = values.outputs[0].tensor = places.at(parameter);
  return values;
}

}  // namespace

std::vector<StepBlock> step_blocks(const SequenceContext& context, int device_class) {
  const model::Graph& graph = context.plan.graph();
  const std::map<TensorId, LocalHolding>& held = context.parameters.on(device_class);
  std::map<int, std::vector<TensorId>> by_segment;
  for (const auto& [parameter, local] : held) {
    if (graph.gradient_of[parameter] >= 0) by_segment[local.segments.front()].push_back(parameter);
  }
  std::vector<StepBlock> steps;
  DealtKernels kernels(kernels_of(context.stack, "optimizer_step"));
  for (const auto& [segment, list] : by_segment) {
    StepBlock step{.segment = segment, .bytes = {}, .block = {.name = "step"}, .key = "step"};
    std::map<int, TensorId> by_place;
    for (const TensorId parameter : list)
      by_place.emplace(context.stages.facts(segment).place.at(parameter), parameter);
    for (const auto& [place, parameter] : by_place) {
      const model::Tensor& tensor = graph.tensors[parameter];
      const LocalHolding& local = held.at(parameter);
      step.parameters.push_back(parameter);
      step.gradients += local.gradient_scale * local.step.bytes;
      const int ranks = ranks_along(local.grid, without(local.step.axes, local.parameter.axes));
      add_step(step, tensor, graph.segments[segment].name + ".", place, stepped(tensor, local),
               ranks, step_values(context, device_class, segment, parameter, local), context,
               kernels);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

namespace {

/// What frameworks copy for all steps of a device at once.
void add_step_copies(std::vector<Resident>& residents, const SequenceContext& context,
                     const SequenceDraft& draft, double elements) {
  for (const With with : {With::steps, With::until_next}) {
    for (const Bytes size : bytes_kept_with(context.stack, context.training.precision, with)) {
      if (elements * size <= Bytes{}) continue;
      residents.push_back({Category::temporaries, elements * size});
      if (!context.plan.updates.flush) continue;
      residents.back().span = draft.steps_span();
      residents.back().until_next = with == With::until_next;
    }
  }
}

Residence residence(Keep::Where where) {
  if (where == Keep::Where::drives) return Residence::drives;
  return where == Keep::Where::host ? Residence::host : Residence::device;
}

/// Buffers of a constant size in which gradients wait for their reduction.
void add_gradient_buffers(std::vector<Resident>& residents,
                          const strategies::GradientReduction& gradients,
                          const SequenceDraft& draft) {
  const std::optional<Resident::Span> span = draft.backward_span();
  for (int buffer = 0; span && buffer < gradients.buffers; ++buffer)
    residents.push_back({Category::whole_gradients, gradients.bucket.value(), span});
}

/// Master weights and what the optimizer and the stack keep of a parameter that steps here. What
/// the stack keeps beside is where the steps are, though the states be on drives.
void add_states(std::vector<Resident>& residents, const SequenceContext& context,
                const cost::Stepped& steps) {
  const Residence here = context.plan.steps.on_host ? Residence::host : Residence::device;
  const auto keep = [&](Bytes bytes, Residence place) {
    if (bytes > Bytes{})
      residents.push_back({.category = Category::optimizer_states, .bytes = bytes, .place = place});
  };
  const Residence of_states = residence(context.plan.place_of(Keep::What::states));
  keep(cost::master_bytes(context.training.precision, steps), of_states);
  for (const cost::OptimizerState& state : context.training.optimizer.states)
    keep(cost::state_bytes(state, steps), of_states);
  for (const Bytes size : bytes_kept_with(context.stack, context.training.precision, With::states))
    keep(steps.elements * size, here);
}

/// Weights of a device, in shards and on the host where the plan says so.
void add_parameter(std::vector<Resident>& residents, const SequenceContext& context,
                   int device_class, TensorId parameter, const LocalHolding& local, bool cast,
                   int versions) {
  const Plan& plan = context.plan;
  const model::Tensor& tensor = plan.graph().tensors[parameter];
  residents.push_back({.category = Category::parameters,
                       .bytes = versions * local.parameter.bytes,
                       .place = residence(plan.place_of(Keep::What::parameters)),
                       .tensor = parameter,
                       .grid = context.stages.replica_on(local.grid),
                       .layout = local.holding->layout,
                       .shards = local.parameter.axes,
                       .masks = own_part(context, device_class, local),
                       .versions = versions});
  if (!cast) return;
  const Bytes copies = copies_of(local.parameter.bytes, tensor.type, context.training.precision);
  residents.push_back({.category = Category::parameters, .bytes = versions * copies});
}

/// Gradients that wait on the host, or its drives, for their step: what the rank steps; of two
/// iterations where the step of one runs while those of the next arrive.
Resident gradients_on_host(const Plan& plan, const LocalHolding& local) {
  const Bytes one = local.gradient_scale * local.step.bytes;
  return {.category = Category::gradients,
          .bytes = (plan.steps.delayed ? 2 : 1) * one,
          .place = residence(plan.place_of(Keep::What::gradients))};
}

/// Gradients on the device.
void add_gradients(std::vector<Resident>& residents, const SequenceContext& context,
                   const SequenceDraft& draft, model::TensorId parameter,
                   const LocalHolding& local) {
  const Plan& plan = context.plan;
  residents.push_back({.category = Category::gradients,
                       .bytes = local.gradient_scale * local.gradient.bytes,
                       .tensor = plan.graph().gradient_of[parameter]});
  if (says(context.stack, cost::Lifetime::gradients_until_step) && plan.updates.flush &&
      local.gradient.axes.empty())
    residents.back().span = draft.gradient_span(parameter);
  const double elements = local.bytes / model::size_of(plan.graph().tensors[parameter].type);
  for (const Bytes size :
       bytes_kept_with(context.stack, context.training.precision, With::gradients))
    residents.push_back({Category::gradients, elements * size});
}

}  // namespace

ParameterBuffers::ParameterBuffers(const SequenceContext& context, const SequenceDraft& draft,
                                   int versions)
    : c_(context),
      draft_(draft),
      versions_(versions),
      cast_(model::cast_parameters(context.plan.graph())) {}

std::vector<Resident> ParameterBuffers::of(TensorId parameter, const LocalHolding& local) const {
  const Plan& plan = c_.plan;
  std::vector<Resident> buffers;
  const bool steps_here = plan.graph().gradient_of[parameter] >= 0;
  // What is not trained stays as it is.
  add_parameter(buffers, c_, draft_.device_class(), parameter, local, cast_.contains(parameter),
                steps_here ? versions_ : 1);
  if (!steps_here) return buffers;
  if (plan.steps.on_host) {
    buffers.push_back(gradients_on_host(plan, local));
  } else {
    add_gradients(buffers, c_, draft_, parameter, local);
  }
  add_states(buffers, c_, stepped(plan.graph().tensors[parameter], local));
  return buffers;
}

std::vector<Resident> buffers_beside(const SequenceContext& context, const SequenceDraft& draft) {
  const Plan& plan = context.plan;
  double stepped_here = 0;
  for (const auto& [parameter, local] : context.parameters.on(draft.device_class())) {
    if (plan.graph().gradient_of[parameter] >= 0 && !plan.steps.on_host)
      stepped_here += stepped(plan.graph().tensors[parameter], local).elements;
  }
  std::vector<Resident> residents;
  add_step_copies(residents, context, draft, stepped_here);
  add_gradient_buffers(residents, plan.gradients, draft);
  for (const auto& of : {caches, kept_outputs, kept_buffers, kept_messages, gather_buffers}) {
    const std::vector<Resident> more = of(context, draft);
    residents.insert(residents.end(), more.begin(), more.end());
  }
  return residents;
}

std::vector<Resident> resident_buffers(const SequenceContext& context, const SequenceDraft& draft,
                                       int versions) {
  const ParameterBuffers buffers(context, draft, versions);
  std::vector<Resident> residents;
  const auto add = [&](const std::vector<Resident>& more) {
    residents.insert(residents.end(), more.begin(), more.end());
  };
  for (const auto& [parameter, local] : context.parameters.on(draft.device_class()))
    add(buffers.of(parameter, local));
  add(buffers_beside(context, draft));
  return residents;
}

}  // namespace stratagem::lowering

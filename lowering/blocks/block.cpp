// Goes through the operators of a pass, converts every operand to the layout that its reader needs,
// and records who writes and reads each buffer.
#include "lowering/blocks/block.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/blocks/held_slots.hpp"
#include "lowering/blocks/lifetimes.hpp"
#include "lowering/blocks/passes.hpp"
#include "lowering/blocks/waiting_gradients.hpp"
#include "lowering/stack/casts.hpp"
#include "lowering/stack/kernels.hpp"
#include "lowering/stages/operator_layout.hpp"
#include "lowering/stages/shards.hpp"
#include "placement/local_part.hpp"
#include "strategies/parallel/options.hpp"

namespace stratagem::lowering {

using placement::AxisRole;
using placement::Layout;
using program::Category;
using program::Stream;
using program::Task;
using strategies::Keep;

namespace {

using model::TensorId;

/// A tensor in one layout: where it is, and the task that made it so (-1: there from the start).
struct Version {
  Layout layout;
  int slot = -1;
  int task = -1;
};

class BlockLowering {
 public:
  explicit BlockLowering(const BlockContext& context, std::string name)
      : c_(context), graph_(context.graph), held_(context.stack.held_inputs) {
    result_.block.name = std::move(name);
  }

  /// A buffer that exists when the block begins.
  void import(TensorId tensor, const Border& border) {
    const int slot = new_slot(tensor, border.layout, border.category);
    external_.insert(slot);
    if (border.category == Category::whole_gradients) {
      whole_gradients_[tensor] = slot;
      survivors_.insert(slot);
    } else {
      versions_[tensor].push_back({border.layout, slot, -1});
    }
  }

  /// Runs operators in order, fusing those that the stack fuses.
  void run(const std::vector<model::OpId>& ops, bool recomputed) {
    recomputed_ = recomputed;
    for (std::size_t i = 0; i < ops.size();) {
      const std::span<const model::OpId> group(ops.data() + i,
                                               fused_length(std::span(ops).subspan(i)));
      run_group(group);
      i += group.size();
    }
  }

  /// The framework saves or restores its random generator's state, and waits for every copy.
  void copy_random_state(int copies) {
    if (copies == 0) return;
    push(random_state_copies(copies, c_.stack));
  }

  /// Turns a tensor that leaves the block into a layout without partial values; it outlives the
  /// block.
  void leave(TensorId tensor, Category category) {
    if (!versions_.contains(tensor)) {
      throw InputError("", "/model", "what leaves a segment to be computed there",
                       graph_.tensors[tensor].name);
    }
    const Version& now = versions_.at(tensor).front();
    Layout full = now.layout;
    for (AxisRole& role : full) {
      if (role.dim == AxisRole::partial) role = {AxisRole::replica};
    }
    const Version version = obtain(tensor, full);
    result_.block.slots[version.slot].category = category;
    result_.out[place(tensor)] = {full, category};
    survivors_.insert(version.slot);
  }

  /// A tensor that the backward pass reads.
  void keep(TensorId tensor, Category category) {
    if (versions_.contains(tensor)) keep(tensor, smallest(tensor), category);
  }

  /// Keeps this device's part of a checkpoint that the plan divides, and frees the whole; false if
  /// it lies nowhere whole along the plan's axes.
  bool keep_part(TensorId tensor, Category category) {
    const auto found = versions_.find(tensor);
    if (c_.plan.divided(Keep::What::checkpoints).empty() || found == versions_.end()) return false;
    const Version whole =
        external_.contains(found->second.front().slot) ? found->second.front() : smallest(tensor);
    const Layout part = divided_checkpoint(tensor, whole.layout);
    if (part == whole.layout) return false;
    Task task{};
    task.name = short_name(tensor) + " part";
    cost::Kernel kernel;
    kernel.kind = cost::KernelKind::elementwise;
    kernel.traffic = 2 * local_bytes(graph_.tensors[tensor], part, c_.grid);
    task.work = kernel;
    task.reads = {whole.slot};
    wait_for(task, whole.task);
    if (external_.contains(whole.slot)) note_reader(tensor, task.stream);
    const int slot = new_slot(tensor, part, category);
    task.writes = {slot};
    task.operations = {{.action = program::Action::select,
                        .inputs = {{place(tensor), whole.slot, whole.layout}},
                        .outputs = {{place(tensor), slot, part}}}};
    result_.parts[place(tensor)] = push(std::move(task));
    result_.out[place(tensor)] = {part, category};
    survivors_.insert(slot);
    return true;
  }

  /// Keeps of an imported tensor the version that is whole, if only a part was given.
  void keep_whole(TensorId tensor, Category category) {
    const std::vector<Version>& versions = versions_.at(tensor);
    const auto bytes = [&](const Version& version) {
      return result_.block.slots[version.slot].bytes;
    };
    keep(tensor, *std::ranges::max_element(versions, {}, bytes), category);
  }

  /// An imported buffer that others still need.
  void spare(TensorId tensor) { survivors_.insert(versions_.at(tensor).front().slot); }

  /// Has what the forward operators read gathered, too: frameworks gather a module as a whole. What
  /// no task here reads is freed by the last.
  void gather_all() {
    if (result_.block.tasks.empty()) return;
    const auto last = static_cast<int>(result_.block.tasks.size()) - 1;
    const Stream stream = result_.block.tasks.back().stream;
    for (const model::OpId id : graph_.segments[c_.facts.segment].forward) {
      const model::Operator& op = graph_.operators[id];
      const std::vector<std::string> split = split_along(c_.plan, c_.grid, id);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (role(op.inputs[i]) != model::Role::parameter) continue;
        if (gathered(op.inputs[i], input_layout(op, i, split)))
          result_.first_readers.try_emplace(place(op.inputs[i]), std::map{std::pair(stream, last)});
      }
    }
  }

  LoweredBlock finish() {
    set_lifetimes(result_.block, external_, survivors_);
    return std::move(result_);
  }

 private:
  [[nodiscard]] int place(TensorId tensor) const { return c_.facts.place.at(tensor); }
  [[nodiscard]] model::Role role(TensorId tensor) const { return graph_.tensors[tensor].role; }

  void keep(TensorId tensor, const Version& version, Category category) {
    result_.block.slots[version.slot].category = category;
    result_.out[place(tensor)] = {version.layout, category};
    survivors_.insert(version.slot);
  }

  /// Of the layouts in which a tensor was made or read here the one of fewest bytes; among equals
  /// one that the backward pass reads, and the latest of those. A view of a buffer in another
  /// layout is no choice.
  [[nodiscard]] Version smallest(TensorId tensor) const {
    const std::vector<Version>& versions = versions_.at(tensor);
    const auto cost = [&](const Version& version) {
      return std::pair(result_.block.slots[version.slot].bytes,
                       !read_backward(tensor, version.layout));
    };
    Version version = versions.front();
    for (const Version& other : versions) {
      const bool view = local_bytes(graph_.tensors[tensor], other.layout, c_.grid) <
                        result_.block.slots[other.slot].bytes;
      if (!view && cost(other) <= cost(version)) version = other;
    }
    return version;
  }

  /// A layout of a checkpoint whose devices along the plan's axes hold parts where they held the
  /// same.
  [[nodiscard]] Layout divided_checkpoint(TensorId tensor, Layout layout) const {
    for (std::size_t axis = 0; axis < layout.size(); ++axis) {
      const placement::Axis& ranks = c_.grid.axes[axis];
      const auto& named_axes = c_.plan.divided(Keep::What::checkpoints);
      const bool named = std::ranges::count(named_axes, ranks.name) > 0;
      if (!named || layout[axis].dim != AxisRole::replica) continue;
      const auto parts = divided(layout, axis, graph_.tensors[tensor], c_.grid);
      if (!parts) {
        throw InputError("", path_of(&strategies::Options::partition_checkpoints),
                         "a dimension of " + graph_.tensors[tensor].name + " that divides by " +
                             std::to_string(ranks.size) + ", the ranks of " + ranks.name,
                         "none");
      }
      layout = *parts;
    }
    return layout;
  }

  [[nodiscard]] bool read_backward(TensorId tensor, const Layout& layout) const {
    for (const model::OpId id : graph_.segments[c_.facts.segment].backward) {
      const model::Operator& op = graph_.operators[id];
      const std::vector<std::string> split = split_along(c_.plan, c_.grid, id);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] == tensor && input_layout(op, i, split) == layout) return true;
      }
    }
    return false;
  }

  /// How many of the next operators run as one kernel: 1, or the length of the longest fusion that
  /// they begin.
  [[nodiscard]] std::size_t fused_length(std::span<const model::OpId> ops) const {
    std::size_t longest = 1;
    for (const std::vector<std::string>& kinds : c_.stack.fusions) {
      if (kinds.size() <= longest || kinds.size() > ops.size()) continue;
      const auto matches = [&](model::OpId id, const std::string& kind) {
        return stack_name(graph_.operators[id]) == kind;
      };
      const std::span<const model::OpId> group = ops.first(kinds.size());
      if (std::ranges::equal(group, kinds, matches) && is_chain(group)) longest = kinds.size();
    }
    return longest;
  }

  /// Does every operator of a group read the first output of the one before it, as that one leaves
  /// it?
  [[nodiscard]] bool is_chain(std::span<const model::OpId> group) const {
    for (std::size_t i = 1; i < group.size(); ++i) {
      const model::Operator& before = graph_.operators[group[i - 1]];
      const model::Operator& op = graph_.operators[group[i]];
      if (op.inputs[0] != before.outputs[0]) return false;
      const Layout left = left_partial(
          before, output_layout(before, 0, split_along(c_.plan, c_.grid, group[i - 1])));
      if (input_layout(op, 0, split_along(c_.plan, c_.grid, group[i])) != left) return false;
    }
    return true;
  }

  /// A layout of an operand of a sum: along an axis on which all operands are partial sums, and
  /// which the plan does not divide, they are added as they are. The result is a partial sum, too,
  /// and is completed once rather than each of them.
  [[nodiscard]] Layout left_partial(const model::Operator& op, Layout layout) const {
    if (op.kind != model::OpKind::add && op.kind != model::OpKind::gradient_sum) return layout;
    for (std::size_t axis = 0; axis < layout.size(); ++axis) {
      const auto partial = [&](TensorId tensor) { return only_partial(tensor, axis); };
      if (layout[axis].dim == AxisRole::replica && std::ranges::all_of(op.inputs, partial))
        layout[axis] = {AxisRole::partial};
    }
    return layout;
  }

  /// Is a tensor here, and along an axis nowhere more than partial sums?
  [[nodiscard]] bool only_partial(TensorId tensor, std::size_t axis) const {
    const auto found = versions_.find(tensor);
    const auto how = combine_.find(tensor);
    const bool sums = how != combine_.end() && how->second == model::Combine::sum;
    return found != versions_.end() && sums &&
           std::ranges::all_of(found->second, [&](const Version& version) {
             return version.layout[axis].dim == AxisRole::partial;
           });
  }

  /// One task for operators that read each other's results; usually there is only one.
  void run_group(std::span<const model::OpId> group) {
    const model::Operator& last = graph_.operators[group.back()];
    const cost::OperatorFacts facts = facts_of(last, c_.stack);
    running_ = group.back();
    copy_random_state(facts.state_copies_before);
    for (std::size_t i = 0; i < group.size(); ++i) cast_operands(group[i], i > 0);
    Task task{};
    for (std::size_t i = 0; i < group.size(); ++i) read_operands(task, group[i], i > 0);
    const auto index = static_cast<int>(result_.block.tasks.size());
    for (const model::OpId id : group) write_results(task, id, index);
    for (const model::OpId id : group) hold_operands(task, id);
    task.name = name_within(graph_, graph_.operators[group.front()]);
    for (const model::OpId id : group.subspan(1))
      task.name += " + " + name_within(graph_, graph_.operators[id]);
    if (recomputed_) task.name += " again";
    task.work = fused_kernel(group);
    for (const model::OpId id : group) task.operations.push_back(operation(id));
    task.recomputed = recomputed_;
    push(std::move(task));
    copy_random_state(facts.state_copies_after);
    running_ = -1;
  }

  /// Notes what variables of the framework name from an operator on; its task is then the last to
  /// use what they name no longer.
  void hold_operands(Task& task, model::OpId id) {
    if (c_.stack.held_inputs.empty()) return;
    const std::vector<int> gone = held_.pass(stack_name(graph_.operators[id]), slots_read(id));
    task.reads.insert(task.reads.end(), gone.begin(), gone.end());
  }

  /// Slots of an operator's operands that are neither inputs nor resident.
  [[nodiscard]] std::vector<int> slots_read(model::OpId id) const {
    const model::Operator& op = graph_.operators[id];
    const std::vector<std::string> split = split_along(c_.plan, c_.grid, id);
    std::vector<int> slots;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const int slot = slot_of(op.inputs[i], left_partial(op, input_layout(op, i, split)), false);
      if (slot >= 0) slots.push_back(slot);
    }
    return slots;
  }

  /// `inner`: the first operand comes from the operator before it in the same kernel.
  void read_operands(Task& task, model::OpId id, bool inner) {
    const model::Operator& op = graph_.operators[id];
    const std::vector<std::string> split = split_along(c_.plan, c_.grid, id);
    for (std::size_t i = inner ? 1 : 0; i < op.inputs.size(); ++i) {
      const Layout layout = left_partial(op, input_layout(op, i, split));
      const auto cast = cast_.find({op.inputs[i], layout});
      if (cast != cast_.end() && casts_operand(graph_, op, op.inputs[i], c_.precision)) {
        task.reads.push_back(cast->second);
      } else {
        read(task, op.inputs[i], layout);
      }
    }
  }

  /// What an operator does, once its operands are read and its results have slots.
  [[nodiscard]] program::Operation operation(model::OpId id) const {
    const model::Operator& op = graph_.operators[id];
    const std::vector<std::string> split = split_along(c_.plan, c_.grid, id);
    program::Operation result{.op = c_.facts.place_of_operator.at(id)};
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const Layout layout = left_partial(op, input_layout(op, i, split));
      result.inputs.push_back({place(op.inputs[i]), slot_of(op.inputs[i], layout, false), layout});
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const Layout layout = left_partial(op, output_layout(op, i, split));
      result.outputs.push_back(
          {place(op.outputs[i]), slot_of(op.outputs[i], layout, true), layout});
      result.adds = result.adds || belongs_to_parameter(op.outputs[i]);
    }
    return result;
  }

  /// Where a tensor lies in a layout: what was there first is read, what came last was written; -1
  /// of inputs and of what is resident.
  [[nodiscard]] int slot_of(TensorId tensor, const Layout& layout, bool written) const {
    if (const auto whole = whole_gradients_.find(tensor); whole != whole_gradients_.end())
      return whole->second;
    if (const auto whole = gathered_.find(tensor); whole != gathered_.end()) return whole->second;
    const auto found = versions_.find(tensor);
    if (found == versions_.end()) return -1;
    const std::vector<Version>& all = found->second;
    const auto first = std::ranges::find(all, layout, &Version::layout);
    const auto last = std::ranges::find(all.rbegin(), all.rend(), layout, &Version::layout);
    if (first == all.end()) return -1;
    return written ? last->slot : first->slot;
  }

  /// Casts what a product of a linear layer wants cast and has not been yet.
  void cast_operands(model::OpId id, bool inner) {
    const model::Operator& op = graph_.operators[id];
    const std::vector<std::string> split = split_along(c_.plan, c_.grid, id);
    for (std::size_t i = inner ? 1 : 0; i < op.inputs.size(); ++i) {
      const TensorId tensor = op.inputs[i];
      if (!casts_operand(graph_, op, tensor, c_.precision)) continue;
      const Layout layout = left_partial(op, input_layout(op, i, split));
      const auto [cast, fresh] = cast_.try_emplace({tensor, layout}, -1);
      if (!fresh) continue;
      Task task{};
      task.name = short_name(tensor) + " to " + model::to_text(c_.precision.products);
      task.recomputed = recomputed_;
      read(task, tensor, layout);
      const model::DataType type = graph_.tensors[tensor].type;
      const Bytes bytes = local_bytes(graph_.tensors[tensor], layout, c_.grid);
      cast->second = new_slot(tensor, layout, Category::temporaries);
      result_.block.slots.back().bytes = copies_of(bytes, type, c_.precision);
      task.writes = {cast->second};
      task.work = cast_kernel(bytes, type, c_.precision);
      push(std::move(task));
    }
  }

  void write_results(Task& task, model::OpId id, int index) {
    const model::Operator& op = graph_.operators[id];
    const std::vector<std::string> split = split_along(c_.plan, c_.grid, id);
    for (const TensorId output : op.outputs) combine_[output] = op.combine;
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
      write(task, op.outputs[i], left_partial(op, output_layout(op, i, split)), index);
    if (held_in_another_type(graph_, op)) {  // a buffer until it has been added
      const TensorId gradient = op.outputs[0];
      task.writes.push_back(new_slot(gradient, output_layout(op, 0, split), Category::temporaries));
      result_.block.slots.back().bytes = model::size_of(computed_type(graph_, op, gradient)) /
                                         model::size_of(graph_.tensors[gradient].type) *
                                         result_.block.slots.back().bytes;
    }
  }

  /// The kernel of the last operator, which also moves what the others move but for what passes
  /// between them.
  [[nodiscard]] cost::Kernel fused_kernel(std::span<const model::OpId> group) const {
    cost::Kernel kernel = kernel_alone(group.back());
    for (const model::OpId id : group.first(group.size() - 1)) {
      const model::Operator& op = graph_.operators[id];
      const Layout layout = output_layout(op, 0, split_along(c_.plan, c_.grid, id));
      const Bytes passed_on = local_bytes(graph_.tensors[op.outputs[0]], layout, c_.grid);
      kernel.traffic += kernel_alone(id).traffic - 2 * passed_on;
    }
    return kernel;
  }

  [[nodiscard]] cost::Kernel kernel_alone(model::OpId id) const {
    const model::Operator& op = graph_.operators[id];
    const std::vector<std::string> split = split_along(c_.plan, c_.grid, id);
    Shapes inputs;
    Shapes outputs;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      inputs.push_back(local_shape(operand(op.inputs[i], op.annotation.inputs[i]),
                                   input_layout(op, i, split), c_.grid));
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      outputs.push_back(local_shape(operand(op.outputs[i], op.annotation.outputs[i]),
                                    output_layout(op, i, split), c_.grid));
    }
    cost::Kernel kernel = on_cast_operands(kernel_of(graph_, op, inputs, outputs, c_.stack), graph_,
                                           op, c_.precision);
    if (op.pass == model::Pass::weight_gradient) {
      const model::Tensor& gradient = graph_.tensors[op.outputs[0]];
      const Layout layout = output_layout(op, 0, split);
      hold_gradient(kernel, graph_, op,
                    local_bytes(gradient, layout, c_.grid) / model::size_of(gradient.type),
                    !keeps_nothing_whole(layout), c_.stack);
    }
    return kernel;
  }

  /// A tensor in the shape in which an operator sees it.
  [[nodiscard]] model::Tensor operand(TensorId id, const std::vector<model::Term>& terms) const {
    model::Tensor tensor = graph_.tensors[id];
    tensor.shape = operand_shape(std::move(tensor.shape), terms, c_.slice);
    return tensor;
  }

  int new_slot(TensorId tensor, const Layout& layout, Category category) {
    const Bytes bytes = local_bytes(graph_.tensors[tensor], layout, c_.grid);
    result_.block.slots.push_back({.name = short_name(tensor),
                                   .tensor = place(tensor),
                                   .bytes = own_bytes(c_.plan, category, bytes),
                                   .category = category,
                                   .layout = layout});
    return static_cast<int>(result_.block.slots.size()) - 1;
  }

  [[nodiscard]] std::string short_name(TensorId tensor) const {
    const std::string& name = graph_.tensors[tensor].name;
    const std::string prefix = graph_.segments[c_.facts.segment].name + ".";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  }

  int push(Task task) {
    std::ranges::sort(task.waits);
    task.waits.erase(std::unique(task.waits.begin(), task.waits.end()), task.waits.end());
    result_.block.tasks.push_back(std::move(task));
    part_of_.push_back(running_);
    return static_cast<int>(result_.block.tasks.size()) - 1;
  }

  /// Of the first `count` tasks; -1 if there is none.
  [[nodiscard]] int last_computation(int count) const {
    while (count > 0 && result_.block.tasks[count - 1].stream != Stream::compute) --count;
    return count - 1;
  }

  /// The last computation that a collective on a tensor waits for: the last one of all, leaving out
  /// those that the stack runs beside it.
  [[nodiscard]] int issued_before(TensorId tensor, const Version& from,
                                  cost::CollectiveKind kind) const {
    const bool of_gradients = role(tensor) == model::Role::gradient;
    const auto beside = cost::beside(c_.stack, kind, of_gradients);
    const model::OpId of = !of_gradients ? running_ : from.task < 0 ? -1 : part_of_[from.task];
    int task = last_computation(static_cast<int>(result_.block.tasks.size()));
    if (!beside || of < 0) return task;
    const auto runs_beside = [&](model::OpId id) {
      if (id < 0 || graph_.operators[id].forward < 0) return false;
      return graph_.operators[id].pass == *beside &&
             graph_.operators[id].forward == graph_.operators[of].forward;
    };
    while (task > from.task && runs_beside(part_of_[task])) task = last_computation(task);
    return task;
  }

  /// Tasks of one stream follow each other anyway; only other streams are waited for.
  void wait_for(Task& task, int earlier) const {
    if (earlier >= 0 && result_.block.tasks[earlier].stream != task.stream)
      task.waits.push_back(earlier);
  }

  /// The task about to be added reads a tensor from outside.
  void note_reader(TensorId tensor, Stream stream) {
    const auto task = static_cast<int>(result_.block.tasks.size());
    result_.first_readers[place(tensor)].emplace(stream, task);
  }

  void read(Task& task, TensorId tensor, const Layout& wanted) {
    if (role(tensor) == model::Role::input)
      return;  // token ids and the like: no buffer of the plan
    if (role(tensor) == model::Role::parameter) return read_parameter(task, tensor, wanted);
    const Version version = obtain(tensor, wanted);
    task.reads.push_back(version.slot);
    wait_for(task, version.task);
    if (external_.contains(version.slot)) {
      note_reader(tensor, task.stream);
    }
  }

  void read_parameter(Task& task, TensorId tensor, const Layout& wanted) {
    see_parameter(tensor, wanted);
    note_reader(tensor, task.stream);
    const std::optional<int> slot = gathered(tensor, wanted);
    if (slot && std::ranges::count(task.reads, *slot) == 0) task.reads.push_back(*slot);
  }

  /// The buffer in which a parameter is whole for this block, if it is not always.
  std::optional<int> gathered(TensorId tensor, const Layout& layout) {
    const model::Tensor& parameter = graph_.tensors[tensor];
    const std::vector<int> axes = shard_axes(c_.plan, c_.grid, layout, Keep::What::parameters);
    const bool whole = !is_gathered(c_.plan, c_.stack, axes) ||
                       stays_whole(c_.plan, parameter, local_bytes(parameter, layout, c_.grid));
    if (whole && c_.plan.place_of(Keep::What::parameters) == Keep::Where::device)
      return std::nullopt;
    const auto [found, fresh] = gathered_.try_emplace(tensor, -1);
    if (fresh) {
      found->second = new_slot(tensor, layout, Category::gathered_parameters);
      external_.insert(found->second);
      result_.gathered.insert(place(tensor));
    }
    return found->second;
  }

  /// Does a parameter's gradient that operators here leave so live only until it is reduced?
  [[nodiscard]] bool keeps_nothing_whole(const Layout& layout) const {
    return c_.plan.steps.on_host ||
           !shard_axes(c_.plan, c_.grid, layout, Keep::What::gradients).empty();
  }

  /// The buffer into which operators here add a parameter's gradient, if it does not live always.
  std::optional<int> whole_gradient(TensorId gradient, const Layout& layout) {
    if (!keeps_nothing_whole(layout)) return std::nullopt;
    const auto [found, fresh] = whole_gradients_.try_emplace(gradient, -1);
    if (fresh) {
      found->second = new_slot(gradient, layout, Category::whole_gradients);
      survivors_.insert(found->second);
    }
    result_.whole_gradients.insert(place(gradient));
    return found->second;
  }

  void see_parameter(TensorId tensor, const Layout& wanted) {
    const auto [found, fresh] = result_.parameters.emplace(place(tensor), wanted);
    if (!fresh && found->second != wanted) {
      throw InputError(
          "", "", "every operator to see the same part of parameter " + graph_.tensors[tensor].name,
          "");
    }
  }

  [[nodiscard]] Category category_when_written(TensorId tensor) const {
    if (role(tensor) == model::Role::statistic) return Category::statistics;
    return recomputed_ && c_.recomputation.inner(tensor) ? Category::activations
                                                         : Category::temporaries;
  }

  void write(Task& task, TensorId tensor, const Layout& layout, int index) {
    result_.last_writer[place(tensor)] = index;
    if (role(tensor) == model::Role::gradient && belongs_to_parameter(tensor)) {
      result_.gradients[place(tensor)] = layout;
      result_.first_addition.try_emplace(place(tensor), index);
      if (const std::optional<int> slot = whole_gradient(tensor, layout))
        task.writes.push_back(*slot);
      return;  // else a resident buffer
    }
    const Category category = category_when_written(tensor);
    const int slot = new_slot(tensor, layout, category);
    task.writes.push_back(slot);
    versions_[tensor].push_back({layout, slot, index});
  }

  [[nodiscard]] bool belongs_to_parameter(TensorId gradient) const {
    return std::ranges::any_of(c_.facts.tensors, [&](TensorId tensor) {
      return graph_.tensors[tensor].role == model::Role::parameter &&
             graph_.gradient_of[tensor] == gradient;
    });
  }

  /// The tensor in the wanted layout, converted from the version that is cheapest to convert.
  Version obtain(TensorId tensor, const Layout& wanted) {
    const auto found = versions_.find(tensor);
    expects(found != versions_.end(),
            "an operator reads what an earlier one wrote or the segment was given");
    for (const Version& version : found->second) {
      if (version.layout == wanted) return version;
    }
    const std::vector<std::int64_t>& shape = graph_.tensors[tensor].shape;
    const std::vector<int> sizes = c_.grid.sizes();
    std::optional<std::pair<double, Version>> best;
    for (const Version& version : found->second) {
      const double cost = conversion_cost(convert(version.layout, wanted, shape, sizes),
                                          version.layout, shape, sizes);
      if (!best || cost < best->first) best = {cost, version};
    }
    Version version = best->second;
    for (const placement::Conversion& step : convert(version.layout, wanted, shape, sizes)) {
      version = apply(tensor, version, step);
      versions_[tensor].push_back(version);
    }
    return version;
  }

  Version apply(TensorId tensor, const Version& from, const placement::Conversion& step) {
    Version to = from;
    to.layout = after(std::move(to.layout), step);
    if (!step.communicates()) return to;  // a chunk is a view
    const model::Tensor& t = graph_.tensors[tensor];
    const cost::CollectiveKind kind = step.collective();
    const bool in_place = kind == cost::CollectiveKind::all_reduce;
    const Layout& larger = kind == cost::CollectiveKind::all_gather ? to.layout : from.layout;
    Task task{};
    task.name = short_name(tensor) + " " + cost::to_text(kind);
    task.work = program::Collective{.kind = kind,
                                    .combine = combine_[tensor],
                                    .group = c_.groups.along(c_.grid, step.axes),
                                    .payload = local_bytes(t, larger, c_.grid)};
    task.stream = Stream::communication;
    task.recomputed = recomputed_;
    task.reads = {from.slot};
    wait_for(task, issued_before(tensor, from, kind));
    if (!in_place) to.slot = new_slot(tensor, to.layout, result_.block.slots[from.slot].category);
    task.writes = {to.slot};
    task.operations = {{.action = program::Action::convert,
                        .inputs = {{place(tensor), from.slot, from.layout}},
                        .outputs = {{place(tensor), to.slot, to.layout}}}};
    if (external_.contains(from.slot)) {
      note_reader(tensor, task.stream);
    }
    if (in_place)  // what the slot held before is gone
      std::erase_if(versions_[tensor], [&](const Version& old) { return old.slot == from.slot; });
    to.task = push(std::move(task));
    result_.last_writer[place(tensor)] = to.task;
    return to;
  }

  const BlockContext& c_;
  const model::Graph& graph_;
  HeldSlots held_;
  LoweredBlock result_;
  std::map<TensorId, std::vector<Version>> versions_;
  std::map<TensorId, model::Combine> combine_;       ///< how partial values become the full one
  std::map<std::pair<TensorId, Layout>, int> cast_;  ///< slots of operands that were cast here
  std::map<TensorId, int> gathered_;                 ///< by parameter: its slot while it is whole
  std::map<TensorId, int> whole_gradients_;          ///< slots
  std::set<int> external_;                           ///< slots that existed when the block began
  std::set<int> survivors_;                          ///< slots that outlive it
  bool recomputed_ = false;
  model::OpId running_ = -1;          ///< the operator whose tasks are added
  std::vector<model::OpId> part_of_;  ///< by task: the operator that it is a part of, or -1
};

std::string name_of(const BlockContext& context, const std::string& pass) {
  return pass + context.plan.graph().segments[context.facts.segment].name;
}

}  // namespace

LoweredBlock lower_forward(const BlockContext& context, const std::map<int, Border>& in,
                           const std::map<int, Category>& leaves, ForwardRun run) {
  const bool again = run == ForwardRun::again;
  BlockLowering lowering(context, name_of(context, again ? "F again " : "F "));
  forward_pass(lowering, context, in, leaves, run);
  return lowering.finish();
}

LoweredBlock lower_backward(const BlockContext& context, const std::map<int, Border>& kept,
                            const std::map<int, Border>& in, BackwardPart part) {
  BlockLowering lowering(context, name_of(context, part == BackwardPart::weight ? "W " : "B "));
  backward_pass(lowering, context, kept, in, part);
  if (part != BackwardPart::weight) lowering.gather_all();
  return lowering.finish();
}

}  // namespace stratagem::lowering

// The plan's rules and steps say whether a block has a weight whole, or a rank's part of it.
#include "lowering/blocks/block_weights.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "lowering/blocks/waiting_gradients.hpp"
#include "lowering/stack/casts.hpp"
#include "lowering/stages/shards.hpp"

namespace stratagem::lowering {

using model::TensorId;
using placement::Part;
using program::Category;
using program::Task;
using strategies::Keep;

void BlockWeights::import(const SlotName& gradient, const Part& part) {
  whole_[gradient.id] = whole_gradient(gradient, part);
  block_.set_there(whole_[gradient.id]);
}

int BlockWeights::whole_gradient(const SlotName& gradient, const Part& part) {
  const int slot = block_.add_slot(gradient, part, Category::whole_gradients);
  block_.slot(slot).bytes = own_bytes(c_.plan, Category::whole_gradients, block_.slot(slot).bytes);
  block_.spare(slot);
  return slot;
}

void BlockWeights::read(Task& task, const SlotName& parameter, const Part& part) {
  see(parameter, part);
  block_.note_reader(task, parameter.tensor);
  const std::optional<int> slot = gathered(parameter, part);
  if (slot && std::ranges::count(task.reads, *slot) == 0) task.reads.push_back(*slot);
}

void BlockWeights::see(const SlotName& parameter, const Part& part) {
  const bool same =
      part.mask
          ? lowered_.parameter_masks.emplace(parameter.tensor, *part.mask).first->second ==
                *part.mask
          : lowered_.parameters.emplace(parameter.tensor, part.layout).first->second == part.layout;
  if (same) return;
  throw InputError("", "",
                   "every operator on a device to see the same part of parameter " +
                       c_.graph.tensors[parameter.id].name,
                   "");
}

std::optional<int> BlockWeights::gathered(const SlotName& parameter, const Part& part) {
  const model::Tensor& tensor = c_.graph.tensors[parameter.id];
  const bool whole = !is_gathered(c_.plan, c_.stack, axes(part, Keep::What::parameters)) ||
                     stays_whole(c_.plan, tensor, bytes_of(tensor, part, c_.grid));
  if (whole && c_.plan.place_of(Keep::What::parameters) == Keep::Where::device) return std::nullopt;
  const auto [found, fresh] = whole_.try_emplace(parameter.id, -1);
  if (fresh) {
    found->second = block_.import(parameter, part, Category::gathered_parameters);
    block_.slot(found->second).bytes =
        read_scale(c_.graph, parameter.id, c_.facts.segment) * block_.slot(found->second).bytes;
    if (kept_for_passes(c_.plan)) block_.spare(found->second);
    lowered_.gathered.insert(parameter.tensor);
  }
  return found->second;
}

void BlockWeights::gather(const SlotName& parameter, const Part& part) {
  const std::vector<Task>& tasks = lowered_.block.tasks;
  if (tasks.empty() || !gathered(parameter, part)) return;
  const std::map last{std::pair(tasks.back().stream, static_cast<int>(tasks.size()) - 1)};
  lowered_.first_readers.try_emplace(parameter.tensor, last);
}

/// Those that divide weights are axes of a grid.
std::vector<int> BlockWeights::axes(const Part& part, Keep::What what) const {
  if (part.mask) return {};
  return shard_axes(c_.plan, c_.grid, part.layout, what);
}

bool BlockWeights::keeps_nothing_whole(const Part& part) const {
  return c_.plan.steps.on_host || !axes(part, Keep::What::gradients).empty();
}

void BlockWeights::add(Task& task, const SlotName& gradient, const Part& part, model::OpId op) {
  if (part.mask) {
    lowered_.gradient_masks[gradient.tensor][op] = *part.mask;
  } else {
    lowered_.gradients[gradient.tensor] = part.layout;
  }
  block_.note_addition(gradient.tensor);
  if (!keeps_nothing_whole(part)) return;
  const auto [found, fresh] = whole_.try_emplace(gradient.id, -1);
  if (fresh) found->second = whole_gradient(gradient, part);
  lowered_.whole_gradients.insert(gradient.tensor);
  task.writes.push_back(found->second);
}

std::optional<int> BlockWeights::slot_of(TensorId tensor) const {
  const auto found = whole_.find(tensor);
  return found == whole_.end() ? std::nullopt : std::optional(found->second);
}

bool BlockWeights::is_gradient_of_parameter(TensorId gradient) const {
  const auto has_it = [&](TensorId tensor) {
    return c_.graph.tensors[tensor].role == model::Role::parameter &&
           c_.graph.gradient_of[tensor] == gradient;
  };
  return c_.graph.tensors[gradient].role == model::Role::gradient &&
         std::ranges::any_of(c_.facts.tensors, has_it);
}

}  // namespace stratagem::lowering

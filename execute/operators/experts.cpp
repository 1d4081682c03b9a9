// Tokens to the slots of experts and back.
#include "kernels/experts.hpp"

#include <algorithm>

#include "execute/operators/shapes.hpp"

namespace stratagem::execute {
namespace {

/// Of slots (samples, tokens, choices) and their contents (experts, samples and slots, width).
kernels::ExpertSlots slots_of(const Region& slots, const Region& contents) {
  const std::vector<std::int64_t> shape = slots.shape(), filled = contents.shape();
  return {.samples = shape[0],
          .tokens = shape[1],
          .choices = shape[2],
          .experts = filled[0],
          .capacity = filled[1] / std::max<std::int64_t>(1, shape[0]),
          .first_expert = contents.mask.ranges[0].begin};
}

template <typename T>
void dispatch(const Application<T>& a) {
  if (a.op.pass != model::Pass::forward) {
    const kernels::ExpertSlots shape = slots_of(a.inputs[1]->region, a.inputs[0]->region);
    return kernels::from_slots<T>(shape, a.in(1), a.in(0), {}, a.out(0));
  }
  const kernels::ExpertSlots shape = slots_of(a.outputs[1]->region, a.outputs[0]->region);
  kernels::choose_slots<T>(shape, a.in(1), a.out(1));
  kernels::to_slots<T>(shape, kernels::In<T>(a.outputs[1]->data), a.in(0), {}, a.out(0));
}

template <typename T>
void combine(const Application<T>& a) {
  const Region& slots = a.inputs[2]->region;
  if (a.op.pass == model::Pass::forward)
    return kernels::from_slots<T>(slots_of(slots, a.inputs[0]->region), a.in(2), a.in(0), a.in(1),
                                  a.out(0));
  const bool to_experts = model::dimension_of(a.op.annotation->outputs[0], "expert") == 0;
  if (to_experts)
    return kernels::to_slots<T>(slots_of(slots, a.outputs[0]->region), a.in(2), a.in(0), a.in(1),
                                a.out(0));
  kernels::slot_weights_gradient<T>(slots_of(slots, a.inputs[1]->region), a.in(2), a.in(0), a.in(1),
                                    a.out(0));
}

/// The weight of every slot's token for the slot's expert, and back.
template <typename T>
void slot_weights(const Application<T>& a) {
  const bool forward = a.is_forward();
  const Value<T>& of_slots = forward ? *a.outputs[0] : *a.inputs[0];
  const kernels::ExpertSlots shape = slots_of(a.inputs[1]->region, of_slots.region);
  const std::vector<T> ones(static_cast<std::size_t>(shape.samples * shape.tokens), T{1});
  forward ? kernels::to_slots<T>(shape, a.in(1), ones, a.in(0), a.out(0))
          : kernels::slot_weights_gradient<T>(shape, a.in(1), ones, a.in(0), a.out(0));
}

/// Contents of slots, added up token by token, and back.
template <typename T>
void collect(const Application<T>& a) {
  const Region& contents = (a.is_forward() ? *a.inputs[0] : *a.outputs[0]).region;
  const kernels::ExpertSlots shape = slots_of(a.inputs[1]->region, contents);
  a.is_forward() ? kernels::from_slots<T>(shape, a.in(1), a.in(0), {}, a.out(0))
                 : kernels::to_slots<T>(shape, a.in(1), a.in(0), {}, a.out(0));
}

}  // namespace

std::vector<Execution> mixtures() {
  std::vector<Execution> rows = {computed("dispatch", [](const auto& a) { dispatch(a); }),
                                 computed("combine", [](const auto& a) { combine(a); }),
                                 computed("slot_weights", [](const auto& a) { slot_weights(a); }),
                                 computed("collect", [](const auto& a) { collect(a); })};
  for (Execution& row : rows) row.not_on_gpu = "mixtures of experts on a GPU";
  return rows;
}

}  // namespace stratagem::execute

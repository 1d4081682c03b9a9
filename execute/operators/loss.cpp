// The steps of a cross-entropy whose classes may be divided.
#include <algorithm>

#include "execute/operators/shapes.hpp"
#include "kernels/cross_entropy.hpp"

namespace stratagem::execute {
namespace {

/// With the maximum at hand exponentials are added up without being kept.
template <typename T>
void row_sum(const Application<T>& a) {
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  if (a.inputs.size() == 1) return kernels::row_sums<T>(rows, a.in(0), a.out(0));
  std::vector<T> exponentials(a.inputs[0]->data.size());
  kernels::exponential<T>(rows, a.in(0), a.in(1), kernels::Out<T>(exponentials));
  kernels::row_sums<T>(rows, kernels::In<T>(exponentials), a.out(0));
}

/// {exponentials, sum, picked, labels, logits, maximum} -> loss, and {dloss, exponentials, sum,
/// labels} -> dlogits.
template <typename T>
void loss_in_parts(const Application<T>& a) {
  if (a.op.pass == model::Pass::forward)
    return kernels::cross_entropy<T>(a.in(5), a.in(1), a.in(2), a.out(0));
  kernels::cross_entropy_gradient<T>(rows_of(*a.inputs[1]), first_class(a.inputs[1]->region),
                                     a.in(0), a.in(1), a.in(2), a.inputs[3]->numbers, a.out(0));
}

/// {logits, maximum, sum, picked, labels} -> loss, dlogits.
template <typename T>
void fused_loss(const Application<T>& a) {
  kernels::cross_entropy<T>(a.in(1), a.in(2), a.in(3), a.out(0));
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  std::vector<T> exponentials(a.inputs[0]->data.size());
  kernels::exponential<T>(rows, a.in(0), a.in(1), kernels::Out<T>(exponentials));
  const std::vector<T> weights(static_cast<std::size_t>(rows.rows), static_cast<T>(a.loss_weight));
  kernels::cross_entropy_gradient<T>(rows, first_class(a.inputs[0]->region),
                                     kernels::In<T>(weights), kernels::In<T>(exponentials), a.in(2),
                                     a.inputs[4]->numbers, a.out(1));
}

}  // namespace

std::vector<Execution> losses() {
  return {
      computed(
          "row_max",
          [](const auto& a) { kernels::row_maximum(rows_of(*a.inputs[0]), a.in(0), a.out(0)); }),
      computed("exponential",
               [](const auto& a) {
                 kernels::exponential(rows_of(*a.inputs[0]), a.in(0), a.in(1), a.out(0));
               }),
      computed("row_sum", [](const auto& a) { row_sum(a); }),
      computed("pick",
               [](const auto& a) {
                 kernels::pick(rows_of(*a.inputs[0]), first_class(a.inputs[0]->region), a.in(0),
                               a.inputs[1]->numbers, a.out(0));
               }),
      computed(
          "cross_entropy",
          [](const auto& a) { a.forward().outputs.size() > 1 ? fused_loss(a) : loss_in_parts(a); }),
  };
}

}  // namespace stratagem::execute

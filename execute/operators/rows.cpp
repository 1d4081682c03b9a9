// Norms and softmaxes along the rows of the last dimension.
#include <cmath>

#include "base/input_error.hpp"
#include "execute/operators/application.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/norm.hpp"
#include "kernels/softmax.hpp"

namespace stratagem::execute {
namespace {

using model::OpKind;

constexpr double epsilon = 1e-5;

template <typename T>
void layer_norm(const Application<T>& a) {
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  if (a.op.pass == model::Pass::forward) {
    return kernels::layer_norm<T>(rows, epsilon, a.in(0), a.in(1), a.in(2), a.out(0), a.out(1));
  }
  kernels::layer_norm_gradient<T>(rows, a.in(0), a.in(1), a.in(2), a.in(3), a.out(0));
}

template <typename T>
void rms_norm(const Application<T>& a) {
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  if (a.op.pass == model::Pass::forward)
    return kernels::rms_norm<T>(rows, epsilon, a.in(0), a.in(1), a.out(0), a.out(1));
  kernels::rms_norm_gradient<T>(rows, a.in(0), a.in(1), a.in(2), a.in(3), a.out(0));
}

/// Adds to the gradient of a norm's scale.
template <typename T>
void scale_gradient(const Application<T>& a) {
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  std::vector<T> gradient(a.outputs[0]->data.size());
  const kernels::Out<T> out(gradient);
  a.forward().kind == OpKind::rms_norm
      ? kernels::rms_norm_scale_gradient<T>(rows, a.in(0), a.in(1), a.in(2), out)
      : kernels::layer_norm_scale_gradient<T>(rows, a.in(0), a.in(1), a.in(2), out);
  kernels::add<T>(kernels::In<T>(a.outputs[0]->data), kernels::In<T>(gradient), a.out(0));
}

/// 1 / sqrt(size of a head): of the dimension that the product which made the scores sums over.
template <typename T>
double scale_of_scores(const Application<T>& a) {
  const model::TensorId scores = a.forward().inputs[0];
  for (const model::Operator& op : a.graph.operators) {
    if (op.kind != OpKind::contraction || op.outputs[0] != scores) continue;
    return 1 / std::sqrt(static_cast<double>(a.graph.tensors[op.inputs[0]].shape.back()));
  }
  throw BrokenPromise("scores are a product of queries and keys");
}

/// Queries are the last dimension but one. What keys there are besides those of the queries comes
/// before them.
template <typename T>
void masked_softmax(const Application<T>& a, double scale) {
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  if (a.op.pass != model::Pass::forward)
    return kernels::softmax_gradient<T>(rows, scale, a.in(0), a.in(1), a.out(0));
  const std::vector<strategies::Range>& ranges = a.inputs[0]->region.mask.ranges;
  const strategies::Range& queries = ranges[ranges.size() - 2];
  const std::vector<std::int64_t>& whole = a.graph.tensors[a.op.inputs[0]].shape;
  const kernels::CausalMask mask{.queries = queries.end - queries.begin,
                                 .first = queries.begin + whole.back() - whole[whole.size() - 2]};
  kernels::softmax<T>(rows, scale, mask, a.in(0), a.out(0));
}

template <typename T>
void softmax(const Application<T>& a) {
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  if (a.op.pass == model::Pass::forward)
    return kernels::softmax<T>(rows, 1, std::nullopt, a.in(0), a.out(0));
  kernels::softmax_gradient<T>(rows, 1, a.in(0), a.in(1), a.out(0));
}

}  // namespace

template <typename T>
bool apply_rows(const Application<T>& a) {
  switch (a.op.kind) {
    case OpKind::layer_norm:
      layer_norm(a);
      return true;
    case OpKind::rms_norm:
      rms_norm(a);
      return true;
    case OpKind::layer_norm_scale_gradient:
      scale_gradient(a);
      return true;
    case OpKind::masked_softmax:
      masked_softmax(a, scale_of_scores(a));
      return true;
    case OpKind::causal_softmax:
      masked_softmax(a, 1);
      return true;
    case OpKind::softmax:
      softmax(a);
      return true;
    default:
      return false;
  }
}

template bool apply_rows<float>(const Application<float>&);
template bool apply_rows<double>(const Application<double>&);

}  // namespace stratagem::execute

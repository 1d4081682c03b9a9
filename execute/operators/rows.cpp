// Norms and softmaxes along the rows of the last dimension.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/input_error.hpp"
#include "execute/operators/shapes.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/norm.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::execute {
namespace {

using model::OpKind;

template <typename T>
void layer_norm(const Application<T>& a) {
  const kernels::Rows rows = normed_rows_of(a);
  if (a.op.pass == model::Pass::forward) {
    return kernels::layer_norm<T>(rows, norm_epsilon, a.in(0), a.in(1), a.in(2), a.out(0),
                                  a.out(1));
  }
  kernels::layer_norm_gradient<T>(rows, a.in(0), a.in(1), a.in(2), a.in(3), a.out(0));
}

template <typename T>
void rms_norm(const Application<T>& a) {
  const kernels::Rows rows = normed_rows_of(a);
  if (a.op.pass == model::Pass::forward)
    return kernels::rms_norm<T>(rows, norm_epsilon, a.in(0), a.in(1), a.out(0), a.out(1));
  kernels::rms_norm_gradient<T>(rows, a.in(0), a.in(1), a.in(2), a.in(3), a.out(0));
}

/// Adds to the gradient of a norm's scale.
template <typename T>
void scale_gradient(const Application<T>& a) {
  const kernels::Rows rows = normed_rows_of(a);
  std::vector<T> gradient(a.outputs[0]->data.size());
  const kernels::Out<T> out(gradient);
  a.forward().kind == OpKind::rms_norm
      ? kernels::rms_norm_scale_gradient<T>(rows, a.in(0), a.in(1), a.in(2), out)
      : kernels::layer_norm_scale_gradient<T>(rows, a.in(0), a.in(1), a.in(2), out);
  kernels::add<T>(kernels::In<T>(a.outputs[0]->data), kernels::In<T>(gradient), a.out(0));
}

/// What keys there are besides those of the queries comes before them.
template <typename T>
void masked_softmax(const Application<T>& a, double scale) {
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  if (a.op.pass != model::Pass::forward)
    return kernels::softmax_gradient<T>(rows, scale, a.in(0), a.in(1), a.out(0));
  kernels::softmax<T>(rows, scale, causal_mask_of(shapes_of(a)), a.in(0), a.out(0));
}

template <typename T>
void softmax(const Application<T>& a, double scale) {
  const kernels::Rows rows = rows_of(*a.inputs[0]);
  if (a.op.pass == model::Pass::forward)
    return kernels::softmax<T>(rows, scale, std::nullopt, a.in(0), a.out(0));
  kernels::softmax_gradient<T>(rows, scale, a.in(0), a.in(1), a.out(0));
}

/// Of scores, to which biases and masks may have been added, the size of a head: what the product
/// that made them sums over.
std::optional<std::int64_t> size_of_heads(const model::Graph& graph, model::TensorId scores) {
  static const OpKind mask = model::operator_named("window_mask");
  for (const model::Operator& op : graph.operators) {
    if (op.pass != model::Pass::forward || std::ranges::count(op.outputs, scores) == 0) continue;
    if (op.kind == OpKind::contraction) return graph.tensors[op.inputs[0]].shape.back();
    if (op.kind != OpKind::add && op.kind != mask) return std::nullopt;
    for (const model::TensorId input : op.inputs) {
      if (const auto size = size_of_heads(graph, input)) return size;
    }
  }
  return std::nullopt;
}

std::string refusal_of_scaling(const model::Graph& graph, const model::Operator& op,
                               Backend /*backend*/) {
  const model::Operator& forward = op.forward >= 0 ? graph.operators[op.forward] : op;
  if (size_of_heads(graph, forward.inputs[0])) return "";
  return "a softmax that scales what is no product of queries and keys";
}

}  // namespace

double scale_of_scores(const Shapes& s) {
  const auto size = size_of_heads(s.graph, s.forward().inputs[0]);
  expects(size.has_value(), "scores are a product of queries and keys");
  return 1 / std::sqrt(static_cast<double>(*size));
}

kernels::CausalMask causal_mask_of(const Shapes& s) {
  const std::vector<placement::Range>& ranges = s.inputs[0]->mask.ranges;
  const placement::Range& queries = ranges[ranges.size() - 2];
  const std::vector<std::int64_t>& whole = s.graph.tensors[s.op.inputs[0]].shape;
  return {.queries = queries.end - queries.begin,
          .first = queries.begin + whole.back() - whole[whole.size() - 2]};
}

std::vector<Execution> along_rows() {
  std::vector<Execution> rows = {
      computed("masked_softmax",
               [](const auto& a) { masked_softmax(a, scale_of_scores(shapes_of(a))); }),
      computed("scaled_softmax", [](const auto& a) { softmax(a, scale_of_scores(shapes_of(a))); }),
      computed("layer_norm", [](const auto& a) { layer_norm(a); }),
      computed("rms_norm", [](const auto& a) { rms_norm(a); }),
      computed("layer_norm_scale_gradient", [](const auto& a) { scale_gradient(a); }),
      computed("causal_softmax", [](const auto& a) { masked_softmax(a, 1); }),
      computed("softmax", [](const auto& a) { softmax(a, 1); }),
  };
  rows[0].refuses = rows[1].refuses = &refusal_of_scaling;
  return rows;
}

}  // namespace stratagem::execute

// The core of an attention as one kernel, on heads that lie in the rows of tokens.
#include "kernels/attention.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "execute/operators/shapes.hpp"

namespace stratagem::execute {
namespace {

/// Which of the forward operator's inputs a backward one gives the gradient of; -1 if it is not its
/// gradient alone.
int gives(const model::Graph& graph, const model::Operator& op) {
  const std::vector<model::TensorId>& inputs = graph.operators[op.forward].inputs;
  const auto found = std::ranges::find_if(
      inputs, [&](model::TensorId input) { return graph.gradient_of[input] == op.outputs[0]; });
  return found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin());
}

template <typename T>
std::vector<T> to_heads(const HeadRows& heads, kernels::In<T> rows) {
  std::vector<T> result(heads.seen());
  kernels::copy_strided<T>(heads.to_heads(), false, rows, result);
  return result;
}

template <typename T>
void to_rows(const HeadRows& heads, const std::vector<T>& values, kernels::Out<T> rows) {
  kernels::copy_strided<T>(heads.to_rows(), false, values, rows);
}

template <typename T>
void forward(const Application<T>& a) {
  const FusedAttention core = fused_attention_of(shapes_of(a));
  const std::vector<T> q = to_heads<T>(core.queries, a.in(0)), k = to_heads<T>(core.keys, a.in(1)),
                       v = to_heads<T>(core.values, a.in(2));
  std::vector<T> out(core.results.seen()), sums(core.sums.seen());
  const bool has_sinks = a.inputs.size() > 3;
  kernels::attention<T>(core.shape, q, k, v, out, sums, has_sinks ? a.in(3) : kernels::In<T>());
  to_rows<T>(core.results, out, a.out(0));
  to_rows<T>(core.sums, sums, a.out(1));
}

/// Inputs: the result's gradient, queries, keys, values, the result, log sums. Of the three
/// gradients that the kernel knows it computes the one that the operator gives.
template <typename T>
void backward(const Application<T>& a) {
  const FusedAttention core = fused_attention_of(shapes_of(a));
  const auto operand = [&](const HeadRows& heads, std::size_t i) {
    return to_heads<T>(heads, a.in(i));
  };
  const std::vector<T> dout = operand(core.results, 0), q = operand(core.queries, 1),
                       k = operand(core.keys, 2), v = operand(core.values, 3),
                       out = operand(core.results, 4), sums = operand(core.sums, 5);
  const HeadRows& heads = core.rows_of(core.gives);
  std::vector<T> gradient(heads.seen());
  const auto place = [&](int i) {
    return i == core.gives ? kernels::Out<T>(gradient) : kernels::Out<T>();
  };
  kernels::attention_gradient<T>(core.shape, dout, q, k, v, out, sums, place(0), place(1),
                                 place(2));
  to_rows<T>(heads, gradient, a.out(0));
}

/// Inputs: the result's gradient, the result, log sums, the sinks.
template <typename T>
void sink_gradient(const Application<T>& a) {
  kernels::attention_sink_gradient<T>(a.in(0), a.in(1), a.in(2), a.in(3), a.out(0));
}

/// A row of the queries holds several heads, as its log sums tell.
std::string refusal_of_attention(const model::Graph& graph, const model::Operator& op,
                                 Backend backend) {
  const model::Operator& forward = op.forward >= 0 ? graph.operators[op.forward] : op;
  const std::int64_t size = graph.tensors[forward.inputs[0]].shape.back() /
                            graph.tensors[forward.outputs[1]].shape.back();
  if (backend == Backend::cuda && size > 256)
    return "fused attention on heads of " + std::to_string(size) +
           ", of which kernels on GPUs know up to 256";
  const auto width = [&](int input) { return graph.tensors[forward.inputs[input]].shape.back(); };
  if (backend == Backend::cuda && width(1) != width(2))
    return "fused attention on a GPU whose values are not as wide as its keys";
  if (backend == Backend::cuda &&
      (forward.window > 0 || !forward.documents.empty() || forward.inputs.size() > 3))
    return "fused attention with a window, sinks or packed documents on a GPU";
  if (op.forward >= 0 && gives(graph, op) < 0)
    return "fused attention whose operands others read, too";
  return "";
}

}  // namespace

kernels::Strided HeadRows::to_heads() const {
  return {.sizes = {batch, tokens, heads, size},
          .from = {all * heads * size, heads * size, size, 1},
          .to = {heads * tokens * size, size, tokens * size, 1}};
}

kernels::Strided HeadRows::to_rows() const {
  const kernels::Strided there = to_heads();
  return {.sizes = there.sizes, .from = there.to, .to = there.from};
}

/// Of documents, behind one another in a sample.
std::vector<std::int64_t> first_tokens(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> firsts(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), firsts.begin(), std::int64_t{0});
  return firsts;
}

/// What a rank has of the queries may be a part of all tokens: behind a causal mask they see the
/// keys up to the last of them. Log sums (batch, tokens, groups, heads of a group) tell how many
/// heads lie in a row.
FusedAttention fused_attention_of(const Shapes& shapes) {
  const bool forward = shapes.is_forward();
  const Region& queries = *shapes.inputs[forward ? 0 : 1];
  const std::vector<std::int64_t> of_q = queries.shape();
  const std::vector<std::int64_t> of_k = shapes.inputs[forward ? 1 : 2]->shape();
  const std::vector<std::int64_t> of_sums =
      (forward ? shapes.outputs[1] : shapes.inputs[5])->shape();
  const std::int64_t size = of_q[3] / of_sums[3];
  FusedAttention fused;
  fused.queries = {of_q[0], of_q[2] * of_sums[3], size, of_q[1], of_q[1]};
  const bool causal = shapes.op.kind == model::OpKind::fused_attention;
  const std::int64_t seen = causal ? queries.mask.ranges[1].end : of_k[1];
  fused.keys = {of_k[0], of_k[2] * (of_k[3] / size), size, seen, of_k[1]};
  // Keys that are copied for every query are several heads in a row, and so are their values.
  const std::int64_t value = shapes.inputs[forward ? 2 : 3]->shape()[3] / (of_k[3] / size);
  fused.values = fused.keys;
  fused.values.size = value;
  fused.results = fused.queries;
  fused.results.size = value;
  fused.sums = fused.queries;
  fused.sums.size = 1;
  fused.shape = {.batch = fused.queries.batch,
                 .heads = fused.queries.heads,
                 .kv_heads = fused.keys.heads,
                 .queries = fused.queries.tokens,
                 .keys = fused.keys.tokens,
                 .size = size,
                 .causal = causal,
                 .values = value,
                 .window = shapes.forward().window,
                 .documents = first_tokens(shapes.forward().documents)};
  if (!forward) fused.gives = gives(shapes.graph, shapes.op);
  return fused;
}

std::vector<Execution> fused_attentions() {
  std::vector<Execution> rows;
  for (const char* kind : {"fused_attention", "fused_attention_to_all"}) {
    rows.push_back(
        computed(kind, [](const auto& a) { a.is_forward() ? forward(a) : backward(a); }));
    rows.back().refuses = &refusal_of_attention;
  }
  rows.push_back(computed("attention_sink_gradient", [](const auto& a) { sink_gradient(a); }));
  rows.back().not_on_gpu = "fused attention with sinks on a GPU";
  return rows;
}

}  // namespace stratagem::execute

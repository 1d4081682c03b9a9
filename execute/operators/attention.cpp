// The core of an attention as one kernel, on heads that lie in the rows of tokens.
#include "kernels/attention.hpp"

#include <algorithm>
#include <vector>

#include "execute/operators/application.hpp"

namespace stratagem::execute {
namespace {

/// Rows (batch, tokens, groups, heads of a group, size), of which the kernel sees (batch, groups,
/// heads of a group, the first `tokens`, size).
struct Heads {
  std::int64_t batch = 0, groups = 0, in_group = 1, size = 0;
  std::int64_t tokens = 0;  ///< that it sees
  std::int64_t all = 0;     ///< that there are

  [[nodiscard]] std::size_t seen() const {
    return static_cast<std::size_t>(batch * groups * in_group * tokens * size);
  }
};

/// Calls `move(in rows, in heads)` for every stretch of `size` elements.
template <typename Move>
void for_each_head_of_token(const Heads& h, const Move& move) {
  const std::int64_t heads = h.groups * h.in_group;
  for (std::int64_t b = 0; b < h.batch; ++b) {
    for (std::int64_t token = 0; token < h.tokens; ++token) {
      for (std::int64_t head = 0; head < heads; ++head)
        move(((b * h.all + token) * heads + head) * h.size,
             ((b * heads + head) * h.tokens + token) * h.size);
    }
  }
}

template <typename T>
std::vector<T> to_heads(const Heads& heads, kernels::In<T> rows) {
  std::vector<T> result(heads.seen());
  for_each_head_of_token(heads, [&](std::int64_t row, std::int64_t head) {
    std::copy_n(rows.data() + row, heads.size, result.data() + head);
  });
  return result;
}

template <typename T>
void to_rows(const Heads& heads, const std::vector<T>& values, kernels::Out<T> rows) {
  for_each_head_of_token(heads, [&](std::int64_t row, std::int64_t head) {
    std::copy_n(values.data() + head, heads.size, rows.data() + row);
  });
}

/// What a rank has of the queries may be a part of all tokens: they see the keys up to the last of
/// them.
struct Core {
  Heads queries, keys, sums;

  /// Log sums (batch, tokens, groups, heads of a group) tell how many heads lie in a row.
  template <typename T>
  Core(const Value<T>& q, const Value<T>& k, const Value<T>& log_sums) {
    const std::vector<std::int64_t> of_q = q.region.shape(), of_k = k.region.shape();
    const std::int64_t in_group = log_sums.region.shape()[3], size = of_q[3] / in_group;
    queries = {of_q[0], of_q[2], in_group, size, of_q[1], of_q[1]};
    keys = {of_k[0], of_k[2], of_k[3] / size, size, q.region.mask.ranges[1].end, of_k[1]};
    sums = queries;
    sums.size = 1;
  }

  [[nodiscard]] kernels::Attention shape() const {
    return {.batch = queries.batch,
            .heads = queries.groups * queries.in_group,
            .kv_heads = keys.groups * keys.in_group,
            .queries = queries.tokens,
            .keys = keys.tokens,
            .size = queries.size,
            .causal = true};
  }
};

/// Which of the forward operator's inputs a backward one gives the gradient of; -1 if it is not its
/// gradient alone.
int gives(const model::Graph& graph, const model::Operator& op) {
  const std::vector<model::TensorId>& inputs = graph.operators[op.forward].inputs;
  const auto found = std::ranges::find_if(
      inputs, [&](model::TensorId input) { return graph.gradient_of[input] == op.outputs[0]; });
  return found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin());
}

template <typename T>
void forward(const Application<T>& a) {
  const Core core(*a.inputs[0], *a.inputs[1], *a.outputs[1]);
  const std::vector<T> q = to_heads<T>(core.queries, a.in(0)), k = to_heads<T>(core.keys, a.in(1)),
                       v = to_heads<T>(core.keys, a.in(2));
  std::vector<T> out(core.queries.seen()), sums(core.sums.seen());
  kernels::attention<T>(core.shape(), q, k, v, out, sums);
  to_rows<T>(core.queries, out, a.out(0));
  to_rows<T>(core.sums, sums, a.out(1));
}

/// Inputs: the result's gradient, queries, keys, values, the result, log sums. Of the three
/// gradients that the kernel knows it computes the one that the operator gives.
template <typename T>
void backward(const Application<T>& a) {
  const Core core(*a.inputs[1], *a.inputs[2], *a.inputs[5]);
  const auto queries = [&](std::size_t i) { return to_heads<T>(core.queries, a.in(i)); };
  const auto keys = [&](std::size_t i) { return to_heads<T>(core.keys, a.in(i)); };
  const std::vector<T> dout = queries(0), q = queries(1), k = keys(2), v = keys(3),
                       out = queries(4), sums = to_heads<T>(core.sums, a.in(5));
  const int which = gives(a.graph, a.op);
  const Heads& heads = which == 0 ? core.queries : core.keys;
  std::vector<T> gradient(heads.seen());
  const auto place = [&](int i) {
    return i == which ? kernels::Out<T>(gradient) : kernels::Out<T>();
  };
  kernels::attention_gradient<T>(core.shape(), dout, q, k, v, out, sums, place(0), place(1),
                                 place(2));
  to_rows<T>(heads, gradient, a.out(0));
}

}  // namespace

bool is_gradient_of_one(const model::Graph& graph, const model::Operator& attention) {
  return attention.forward < 0 || gives(graph, attention) >= 0;
}

template <typename T>
bool apply_attention(const Application<T>& a) {
  if (a.op.kind != model::OpKind::fused_attention) return false;
  a.op.pass == model::Pass::forward ? forward(a) : backward(a);
  return true;
}

template bool apply_attention<float>(const Application<float>&);
template bool apply_attention<double>(const Application<double>&);

}  // namespace stratagem::execute

// Runs an operator by the kernels of GPUs; sizes and places come from operators/shapes.hpp.
#include "execute/gpu/operators.hpp"

#include <array>
#include <map>
#include <optional>

#include "base/input_error.hpp"
#include "execute/operators/shapes.hpp"
#include "kernels/activation.hpp"
#include "kernels/attention.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/half.hpp"
#include "kernels/norm.hpp"
#include "kernels/strided.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::execute::gpu {
namespace {

using kernels::DeviceIn;
using kernels::DeviceOut;
using model::OpKind;

template <typename T>
bool is_forward(const Work<T>& w) {
  return w.a.op.pass == model::Pass::forward;
}

template <typename T>
kernels::Rows rows_of(const Work<T>& w, std::size_t input) {
  return execute::rows_of(*w.a.inputs[input]);
}

template <typename T>
void contraction(const Work<T>& w) {
  const auto [shape, swapped] = product_of(shapes_of(w.a));
  kernels::gemm<T>(w.stream, shape, w.in(swapped ? 1 : 0), w.in(swapped ? 0 : 1), w.out(0));
}

// ---- element by element

template <typename T>
void sum(const Work<T>& w) {
  const std::int64_t columns = w.a.inputs[1]->region.size(), size = w.a.inputs[0]->region.size();
  if (columns == size) return kernels::add<T>(w.stream, w.in(0), w.in(1), w.out(0));
  kernels::bias_add<T>(w.stream, {.rows = size / columns, .columns = columns}, w.in(0), w.in(1),
                       w.out(0));
}

/// Adds what is computed in `sums` to the result.
template <typename T>
void add_to_result(const Work<T>& w, const Elements<T>& sums) {
  kernels::add<T>(w.stream, w.out(0), Work<T>::span(sums), w.out(0));
}

template <typename T>
void bias_gradient(const Work<T>& w) {
  const std::int64_t columns = w.a.outputs[0]->region.size();
  const Elements<T> sums = w.temporary(static_cast<std::size_t>(columns));
  kernels::column_sums<T>(w.stream,
                          {.rows = w.a.inputs[0]->region.size() / columns, .columns = columns},
                          w.in(0), Work<T>::span(sums));
  add_to_result(w, sums);
}

template <typename T>
void dropout(const Work<T>& w) {
  if (!is_forward(w)) {
    return kernels::dropout_gradient<T>(w.stream, w.a.dropout, w.in(0),
                                        Work<T>::span(w.a.inputs[1]->bytes), w.out(0));
  }
  const auto [part, random] = dropped_of(shapes_of(w.a), w.a.random);
  kernels::dropout<T>(w.stream, part, w.a.dropout, random, w.in(0), w.out(0),
                      Work<T>::span(w.a.outputs[1]->bytes));
}

template <typename T>
void embedding(const Work<T>& w) {
  const auto [first, width] = lookup_of(shapes_of(w.a));
  if (is_forward(w))
    return kernels::embedding<T>(w.stream, width, first, w.numbers(0), w.in(1), w.out(0));
  kernels::embedding_gradient<T>(w.stream, width, first, w.in(0), w.numbers(1), w.out(0));
}

// ---- along rows

template <typename T>
void norm(const Work<T>& w, bool layer) {
  const kernels::Rows rows = normed_rows_of(w.a);
  if (!is_forward(w)) {
    layer ? kernels::layer_norm_gradient<T>(w.stream, rows, w.in(0), w.in(1), w.by_row(2), w.in(3),
                                            w.out(0))
          : kernels::rms_norm_gradient<T>(w.stream, rows, w.in(0), w.in(1), w.by_row(2), w.in(3),
                                          w.out(0));
  } else if (layer) {
    kernels::layer_norm<T>(w.stream, rows, norm_epsilon, w.in(0), w.in(1), w.in(2), w.out(0),
                           w.out_by_row(1));
  } else {
    kernels::rms_norm<T>(w.stream, rows, norm_epsilon, w.in(0), w.in(1), w.out(0), w.out_by_row(1));
  }
}

template <typename T>
void scale_gradient(const Work<T>& w) {
  const kernels::Rows rows = normed_rows_of(w.a);
  const Elements<T> gradient = w.temporary(static_cast<std::size_t>(rows.columns));
  w.a.forward().kind == OpKind::rms_norm
      ? kernels::rms_norm_scale_gradient<T>(w.stream, rows, w.in(0), w.in(1), w.by_row(2),
                                            Work<T>::span(gradient))
      : kernels::layer_norm_scale_gradient<T>(w.stream, rows, w.in(0), w.in(1), w.by_row(2),
                                              Work<T>::span(gradient));
  add_to_result(w, gradient);
}

template <typename T>
void softmax(const Work<T>& w, double scale, bool masked) {
  const kernels::Rows rows = rows_of(w, 0);
  if (!is_forward(w))
    return kernels::softmax_gradient<T>(w.stream, rows, scale, w.in(0), w.in(1), w.out(0));
  std::optional<kernels::CausalMask> mask;
  if (masked) mask = causal_mask_of(shapes_of(w.a));
  kernels::softmax<T>(w.stream, rows, scale, mask, w.in(0), w.out(0));
}

// ---- heads

/// What is from `first` on.
template <typename E>
kernels::DeviceSpan<E> from(const kernels::DeviceSpan<E>& all, std::int64_t first) {
  const auto begin = static_cast<std::size_t>(first);
  return all.subspan(begin, all.size() - begin);
}

template <typename T>
void copy_heads(const Work<T>& w, const HeadsCopy& c, bool to_heads, std::size_t input,
                std::size_t output) {
  const kernels::Strided rows_to_heads{
      .sizes = {c.batch, c.tokens, c.groups, c.inner / c.run, c.run},
      .from = {c.tokens * c.groups * c.width, c.groups * c.width, c.width, c.run, 1},
      .to = {c.by_batch, c.by_token, c.by_group, c.by_run, 1}};
  if (to_heads) {
    return kernels::copy_strided<T, T>(w.stream, rows_to_heads, false, from(w.in(input), c.first),
                                       w.out(output));
  }
  const kernels::Strided back{
      .sizes = rows_to_heads.sizes, .from = rows_to_heads.to, .to = rows_to_heads.from};
  kernels::copy_strided<T, T>(w.stream, back, false, w.in(input), from(w.out(output), c.first));
}

template <typename T>
void split_heads(const Work<T>& w) {
  const std::vector<HeadsCopy> copies = heads_of(shapes_of(w.a));
  const bool forward = is_forward(w);
  for (std::size_t i = 0; i < copies.size(); ++i)
    copy_heads(w, copies[i], forward, forward ? 0 : i, forward ? i : 0);
}

/// Rows of keys for several queries, and back, one after the other so that sums have one order.
template <typename T>
void repeat(const Work<T>& w) {
  const bool forward = is_forward(w);
  const kernels::Rows one = execute::rows_of(forward ? *w.a.inputs[0] : *w.a.outputs[0]);
  const kernels::Rows all = execute::rows_of(forward ? *w.a.outputs[0] : *w.a.inputs[0]);
  const std::int64_t times = all.columns / one.columns;
  const std::vector<std::int64_t> by_one = {one.columns, 1}, by_all = {all.columns, 1};
  for (std::int64_t copy = 0; copy < times; ++copy) {
    const kernels::Strided shape{.sizes = {one.rows, one.columns},
                                 .from = forward ? by_one : by_all,
                                 .to = forward ? by_all : by_one};
    const std::int64_t first = copy * one.columns;
    forward ? kernels::copy_strided<T, T>(w.stream, shape, false, w.in(0), from(w.out(0), first))
            : kernels::copy_strided<T, T>(w.stream, shape, true, from(w.in(0), first), w.out(0));
  }
}

template <typename T>
void prepend(const Work<T>& w) {
  const auto [heads, of_sample, width, rows] = prepending_of(shapes_of(w.a));
  const std::int64_t rest = width - rows;
  const kernels::Strided tokens{.sizes = {heads, rest}, .from = {rest, 1}, .to = {width, 1}};
  const kernels::Strided trained{.sizes = {of_sample, rows}, .from = {rows, 1}, .to = {width, 1}};
  const auto reversed = [](const kernels::Strided& shape) {
    return kernels::Strided{.sizes = shape.sizes, .from = shape.to, .to = shape.from};
  };
  if (is_forward(w)) {
    kernels::copy_strided<T, T>(w.stream, tokens, false, w.in(0), from(w.out(0), rows));
  } else if (w.a.op.pass != model::Pass::weight_gradient) {
    return kernels::copy_strided<T, T>(w.stream, reversed(tokens), true, from(w.in(0), rows),
                                       w.out(0));
  }
  for (std::int64_t sample = 0; sample < heads / of_sample; ++sample) {
    const std::int64_t first = sample * of_sample * width;
    is_forward(w)
        ? kernels::copy_strided<T, T>(w.stream, trained, false, w.in(1), from(w.out(0), first))
        : kernels::copy_strided<T, T>(w.stream, reversed(trained), true, from(w.in(0), first),
                                      w.out(0));
  }
}

/// What a kernel sees of rows of tokens, as heads.
template <typename E, typename T>
Elements<E> to_heads(const Work<T>& w, const HeadRows& heads, DeviceIn<E> rows) {
  Elements<E> result = w.template temporary<E>(heads.seen());
  kernels::copy_strided<E, E>(w.stream, heads.to_heads(), false, rows, Work<T>::span(result));
  return result;
}

template <typename E, typename T>
void to_rows(const Work<T>& w, const HeadRows& heads, const Elements<E>& values,
             DeviceOut<E> rows) {
  kernels::copy_strided<E, E>(w.stream, heads.to_rows(), false, Work<T>::span(values), rows);
}

template <typename T>
void rotary(const Work<T>& w) {
  const auto [turn, rows] = rotary_of(shapes_of(w.a));
  const auto apply = [&turn = turn, &w](DeviceIn<T> x, DeviceOut<T> y) {
    is_forward(w) ? kernels::rotary<T>(w.stream, turn, x, y)
                  : kernels::rotary_gradient<T>(w.stream, turn, x, y);
  };
  if (!rows) return apply(w.in(0), w.out(0));
  const Elements<T> heads = to_heads<T>(w, *rows, w.in(0)), turned = w.temporary(rows->seen());
  apply(Work<T>::span(heads), Work<T>::span(turned));
  to_rows<T>(w, *rows, turned, w.out(0));
}

// ---- fused attention

template <typename T>
void fused_attention(const Work<T>& w) {
  const FusedAttention core = fused_attention_of(shapes_of(w.a));
  const auto span = [](const auto& elements) { return Work<T>::span(elements); };
  const auto q = to_heads<T>(w, core.queries, w.in(0)), k = to_heads<T>(w, core.keys, w.in(1));
  const auto v = to_heads<T>(w, core.keys, w.in(2));
  const Elements<T> out = w.temporary(core.queries.seen());
  const auto sums = w.template temporary<float>(core.sums.seen());
  kernels::attention<T>(w.stream, core.shape, span(q), span(k), span(v), span(out), span(sums));
  to_rows<T>(w, core.queries, out, w.out(0));
  to_rows<float>(w, core.sums, sums, w.out_by_row(1));
}

/// The kernels compute all three gradients; each of three operators keeps its own.
template <typename T>
void fused_attention_gradient(const Work<T>& w) {
  const FusedAttention core = fused_attention_of(shapes_of(w.a));
  const auto span = [](const auto& elements) { return Work<T>::span(elements); };
  const auto queries = [&](std::size_t i) { return to_heads<T>(w, core.queries, w.in(i)); };
  const auto keys = [&](std::size_t i) { return to_heads<T>(w, core.keys, w.in(i)); };
  const auto dout = queries(0), q = queries(1), k = keys(2), v = keys(3), out = queries(4);
  const auto sums = to_heads<float>(w, core.sums, w.by_row(5));
  const std::array gradients{w.temporary(core.queries.seen()), w.temporary(core.keys.seen()),
                             w.temporary(core.keys.seen())};
  kernels::attention_gradient<T>(w.stream, core.shape, span(dout), span(q), span(k), span(v),
                                 span(out), span(sums), span(gradients[0]), span(gradients[1]),
                                 span(gradients[2]));
  to_rows<T>(w, core.rows_of(core.gives), gradients.at(static_cast<std::size_t>(core.gives)),
             w.out(0));
}

template <typename T>
void any_fused_attention(const Work<T>& w) {
  is_forward(w) ? fused_attention(w) : fused_attention_gradient(w);
}

// ---- the loss

/// With the maximum at hand exponentials are added up and forgotten.
template <typename T>
void row_sum(const Work<T>& w) {
  const kernels::Rows rows = rows_of(w, 0);
  if (w.a.inputs.size() == 1) return kernels::row_sums<T>(w.stream, rows, w.in(0), w.out_by_row(0));
  const Elements<T> exponentials = w.temporary(w.in(0).size());
  kernels::exponential<T>(w.stream, rows, w.in(0), w.by_row(1), Work<T>::span(exponentials));
  kernels::row_sums<T>(w.stream, rows, Work<T>::span(exponentials), w.out_by_row(0));
}

/// Operands as in operators/loss.cpp.
template <typename T>
void loss_in_parts(const Work<T>& w) {
  if (is_forward(w))
    return kernels::cross_entropy(w.stream, w.by_row(5), w.by_row(1), w.by_row(2), w.out_by_row(0));
  kernels::cross_entropy_gradient<T>(w.stream, rows_of(w, 1), first_class(w.a.inputs[1]->region),
                                     w.by_row(0), w.in(1), w.by_row(2), w.numbers(3), w.out(0));
}

/// Exponentials are computed where their gradient is to be.
template <typename T>
void fused_loss(const Work<T>& w) {
  kernels::cross_entropy(w.stream, w.by_row(1), w.by_row(2), w.by_row(3), w.out_by_row(0));
  const kernels::Rows rows = rows_of(w, 0);
  kernels::exponential<T>(w.stream, rows, w.in(0), w.by_row(1), w.out(1));
  const auto weights = w.template temporary<float>(static_cast<std::size_t>(rows.rows));
  kernels::fill<float>(w.stream, w.a.loss_weight, Work<T>::span(weights));
  kernels::cross_entropy_gradient<T>(w.stream, rows, first_class(w.a.inputs[0]->region),
                                     Work<T>::span(weights), w.out(1), w.by_row(2), w.numbers(4),
                                     w.out(1));
}

template <typename T>
using Runs = std::map<std::string_view, void (*)(const Work<T>&)>;

template <typename T>
Runs<T> element_by_element() {
  using W = const Work<T>&;
  return {
      {"add", &sum<T>},
      {"bias_add", &sum<T>},
      {"gradient_sum", &sum<T>},
      {"bias_gradient", &bias_gradient<T>},
      {"multiply", [](W w) { kernels::multiply<T>(w.stream, w.in(0), w.in(1), w.out(0)); }},
      {"identity", [](W w) { w.engine.copy(*w.a.inputs[0], *w.a.outputs[0]); }},
      {"dropout", &dropout<T>},
      {"attention_dropout", &dropout<T>},
      {"embedding", &embedding<T>},
      {"gelu",
       [](W w) {
         is_forward(w) ? kernels::gelu<T>(w.stream, w.in(0), w.out(0))
                       : kernels::gelu_gradient<T>(w.stream, w.in(0), w.in(1), w.out(0));
       }},
      {"relu",
       [](W w) {
         is_forward(w) ? kernels::relu<T>(w.stream, w.in(0), w.out(0))
                       : kernels::relu_gradient<T>(w.stream, w.in(0), w.in(1), w.out(0));
       }},
      {"squared_relu",
       [](W w) {
         is_forward(w) ? kernels::squared_relu<T>(w.stream, w.in(0), w.out(0))
                       : kernels::squared_relu_gradient<T>(w.stream, w.in(0), w.in(1), w.out(0));
       }},
      {"sigmoid",
       [](W w) {
         is_forward(w) ? kernels::sigmoid<T>(w.stream, w.in(0), w.out(0))
                       : kernels::sigmoid_gradient<T>(w.stream, w.in(0), w.in(1), w.out(0));
       }},
      {"silu",
       [](W w) {
         is_forward(w) ? kernels::silu<T>(w.stream, w.in(0), w.out(0))
                       : kernels::silu_gradient<T>(w.stream, w.in(0), w.in(1), w.out(0));
       }},
      {"swiglu",
       [](W w) {
         is_forward(w) ? kernels::swiglu_pairs<T>(w.stream, w.in(0), w.out(0))
                       : kernels::swiglu_pairs_gradient<T>(w.stream, w.in(0), w.in(1), w.out(0));
       }},
  };
}

template <typename T>
Runs<T> of_rows_and_heads() {
  using W = const Work<T>&;
  return {
      {"contraction", &contraction<T>},
      {"layer_norm", [](W w) { norm(w, true); }},
      {"rms_norm", [](W w) { norm(w, false); }},
      {"layer_norm_scale_gradient", &scale_gradient<T>},
      {"masked_softmax", [](W w) { softmax(w, scale_of_scores(shapes_of(w.a)), true); }},
      {"causal_softmax", [](W w) { softmax(w, 1, true); }},
      {"scaled_softmax", [](W w) { softmax(w, scale_of_scores(shapes_of(w.a)), false); }},
      {"softmax", [](W w) { softmax(w, 1, false); }},
      {"split_heads", &split_heads<T>},
      {"merge_heads",
       [](W w) { copy_heads(w, heads_of(shapes_of(w.a))[0], !is_forward(w), 0, 0); }},
      {"rotary", &rotary<T>},
      {"repeat", &repeat<T>},
      {"prepend", &prepend<T>},
      {"fused_attention", &any_fused_attention<T>},
      {"fused_attention_to_all", &any_fused_attention<T>},
  };
}

template <typename T>
Runs<T> of_the_loss() {
  using W = const Work<T>&;
  return {
      {"row_max",
       [](W w) { kernels::row_maximum<T>(w.stream, rows_of(w, 0), w.in(0), w.out_by_row(0)); }},
      {"exponential",
       [](W w) {
         kernels::exponential<T>(w.stream, rows_of(w, 0), w.in(0), w.by_row(1), w.out(0));
       }},
      {"row_sum", &row_sum<T>},
      {"pick",
       [](W w) {
         kernels::pick<T>(w.stream, rows_of(w, 0), first_class(w.a.inputs[0]->region), w.in(0),
                          w.numbers(1), w.out_by_row(0));
       }},
      {"cross_entropy",
       [](W w) { w.a.forward().outputs.size() > 1 ? fused_loss(w) : loss_in_parts(w); }},
  };
}

/// By kind of operator.
template <typename T>
const Runs<T>& runs() {
  static const Runs<T> all = [] {
    Runs<T> result = element_by_element<T>();
    result.merge(of_rows_and_heads<T>());
    result.merge(of_the_loss<T>());
    return result;
  }();
  return all;
}

}  // namespace

bool computes(std::string_view kind) { return runs<float>().contains(kind); }

template <typename T>
void apply(const Work<T>& w) {
  const auto found = runs<T>().find(model::row_of(w.a.op.kind).name);
  expects(found != runs<T>().end(), "an operator that is not refused is computed");
  found->second(w);
}

template void apply<float>(const Work<float>&);
template void apply<kernels::Half>(const Work<kernels::Half>&);
template void apply<kernels::BFloat16>(const Work<kernels::BFloat16>&);

}  // namespace stratagem::execute::gpu

// Between rows of tokens and matrices of attention heads, rotary positions, keys for several
// queries or before all of them, biases by distance.
#include <algorithm>

#include "base/input_error.hpp"
#include "execute/operators/dimensions.hpp"
#include "execute/operators/shapes.hpp"
#include "kernels/relative_bias.hpp"

namespace stratagem::execute {
namespace {

using model::OpKind;

std::size_t place_of(const std::vector<model::Term>& terms, const std::string& name) {
  const int place = model::dimension_of(terms, name);
  expects(place >= 0, "heads have the dimensions of tokens");
  return static_cast<std::size_t>(place);
}

/// `terms` are those of heads, which lie as `region` does; without the group's dimension they are
/// rows of tokens. `width` and `first` are left open.
HeadsCopy layout_of(const std::vector<model::Term>& terms, const Region& region,
                    const std::string& token, const std::string& group) {
  const std::vector<std::int64_t> shape = region.shape();
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  const std::size_t s = place_of(terms, token);
  const int g = model::dimension_of(terms, group);
  HeadsCopy layout{.batch = shape[0],
                   .tokens = shape[s],
                   .groups = g < 0 ? 1 : shape[g],
                   .inner = shape.back(),
                   .run = shape.back(),
                   .by_batch = strides[0],
                   .by_token = strides[s],
                   .by_group = g < 0 ? 0 : strides[g]};
  for (std::size_t d = 1; d + 1 < shape.size(); ++d) {
    if (d == s || static_cast<int>(d) == g) continue;
    layout.inner *= shape[d];
    layout.by_run = strides[d];
  }
  return layout;
}

template <typename T>
void copy(const HeadsCopy& l, bool to_heads, T* rows, T* heads) {
  for (std::int64_t b = 0; b < l.batch; ++b) {
    for (std::int64_t s = 0; s < l.tokens; ++s) {
      for (std::int64_t g = 0; g < l.groups; ++g) {
        for (std::int64_t i = 0; i < l.inner / l.run; ++i) {
          T* row = rows + ((b * l.tokens + s) * l.groups + g) * l.width + l.first + i * l.run;
          T* head = heads + b * l.by_batch + s * l.by_token + g * l.by_group + i * l.by_run;
          to_heads ? std::copy_n(row, l.run, head) : std::copy_n(head, l.run, row);
        }
      }
    }
  }
}

/// Have tokens two dimensions, as in axial attention? Then heads lie along either.
bool is_axial(const std::vector<model::Term>& rows) { return rows.size() > 3; }

/// For every element of heads, its place in the rows of tokens, in which the elements of a head lie
/// side by side. Where queries, keys and values lie there one after another, that of the queries.
template <typename T>
std::vector<std::size_t> places_in_rows(const std::vector<model::Term>& terms,
                                        const Value<T>& heads, const Value<T>& rows,
                                        const std::vector<model::Term>& row_terms) {
  const Dimensions of_heads = dimensions(terms, heads.region.shape());
  Dimensions of_rows = dimensions(row_terms, rows.region.shape());
  const auto groups = std::ranges::find(of_heads.names, of_rows.names.back());
  const std::int64_t count = of_heads.sizes[groups - of_heads.names.begin()];
  of_rows.names.push_back(of_heads.names.back());
  of_rows.sizes.push_back(of_rows.sizes.back() / std::max<std::int64_t>(1, count));
  of_rows.sizes[of_rows.sizes.size() - 2] = count;
  return places_in(of_rows, of_heads);
}

/// Copies heads out of rows or into them; of a split `which` of queries, keys and values.
template <typename T>
void copy_axial(const std::vector<model::Term>& terms, Value<T>& heads, Value<T>& rows,
                const std::vector<model::Term>& row_terms, std::size_t which, bool to_heads) {
  const std::size_t first = which * static_cast<std::size_t>(heads.region.shape().back());
  const std::vector<std::size_t> places = places_in_rows(terms, heads, rows, row_terms);
  for (std::size_t i = 0; i < places.size(); ++i) {
    T& in_row = rows.data[places[i] + first];
    to_heads ? heads.data[i] = in_row : in_row = heads.data[i];
  }
}

/// Queries, keys and values of a group lie side by side in a token's row.
template <typename T>
void split_heads(const Application<T>& a) {
  const bool forward = a.op.pass == model::Pass::forward;
  const std::vector<Shared<T>>& heads = forward ? a.outputs : a.inputs;
  const Shared<T>& rows = forward ? a.inputs[0] : a.outputs[0];
  const model::Annotation& terms = *a.forward().annotation;
  if (is_axial(terms.inputs[0])) {
    for (std::size_t i = 0; i < heads.size(); ++i)
      copy_axial(terms.outputs[i], *heads[i], *rows, terms.inputs[0], i, forward);
    return;
  }
  const std::vector<HeadsCopy> copies = heads_of(shapes_of(a));
  for (std::size_t i = 0; i < heads.size(); ++i)
    copy(copies[i], forward, rows->data.data(), heads[i]->data.data());
}

template <typename T>
void merge_heads(const Application<T>& a) {
  const bool forward = a.op.pass == model::Pass::forward;
  const Shared<T>& heads = forward ? a.inputs[0] : a.outputs[0];
  const Shared<T>& rows = forward ? a.outputs[0] : a.inputs[0];
  const model::Annotation& terms = *a.forward().annotation;
  if (is_axial(terms.outputs[0]))
    return copy_axial(terms.inputs[0], *heads, *rows, terms.outputs[0], 0, !forward);
  copy(heads_of(shapes_of(a))[0], !forward, rows->data.data(), heads->data.data());
}

template <typename T>
void rotary(const Application<T>& a) {
  const auto [turn, rows] = rotary_of(shapes_of(a));
  const auto apply = [&turn = turn, &a](kernels::In<T> x, kernels::Out<T> y) {
    a.op.pass == model::Pass::forward ? kernels::rotary<T>(turn, x, y)
                                      : kernels::rotary_gradient<T>(turn, x, y);
  };
  if (!rows) return apply(a.in(0), a.out(0));
  std::vector<T> heads(rows->seen()), turned(rows->seen());
  kernels::copy_strided<T>(rows->to_heads(), false, a.in(0), heads);
  apply(heads, turned);
  kernels::copy_strided<T>(rows->to_rows(), false, turned, a.out(0));
}

/// Rows of keys, again for every query that shares them; gradients add up.
template <typename T>
void repeat(const Application<T>& a) {
  const bool forward = a.op.pass == model::Pass::forward;
  const kernels::Rows one = rows_of(forward ? *a.inputs[0] : *a.outputs[0]);
  const std::int64_t times = rows_of(forward ? *a.outputs[0] : *a.inputs[0]).columns /
                             std::max<std::int64_t>(1, one.columns);
  for (std::int64_t row = 0; row < one.rows; ++row) {
    for (std::int64_t copy = 0; copy < times; ++copy) {
      for (std::int64_t i = 0; i < one.columns; ++i) {
        const std::int64_t many = (row * times + copy) * one.columns + i;
        if (forward) {
          a.out(0)[many] = a.in(0)[row * one.columns + i];
        } else {
          a.out(0)[row * one.columns + i] += a.in(0)[many];
        }
      }
    }
  }
}

/// The gradient of the trained rows is the sum over all samples.
template <typename T>
void prepend(const Application<T>& a) {
  const bool of_rows = a.op.pass == model::Pass::weight_gradient;
  const bool forward = a.op.pass == model::Pass::forward;
  const auto [heads, of_sample, width, rows] = prepending_of(shapes_of(a));
  const std::int64_t rest = width - rows;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t at = head * width;
    if (forward) {
      const auto trained = a.in(1).subspan((head % of_sample) * rows, rows);
      std::ranges::copy(trained, a.out(0).begin() + at);
      std::ranges::copy(a.in(0).subspan(head * rest, rest), a.out(0).begin() + at + rows);
    } else {  // results are there with zeros, or with what is to be added to
      const std::int64_t one = of_rows ? rows : rest, first = of_rows ? 0 : rows;
      const std::int64_t to = (of_rows ? head % of_sample : head) * one;
      for (std::int64_t i = 0; i < one; ++i) a.out(0)[to + i] += a.in(0)[at + first + i];
    }
  }
}

/// A score for every pair; its queries and keys may be a part of all.
template <typename T>
void relative_bias(const Application<T>& a) {
  const bool forward = a.op.pass == model::Pass::forward;
  const placement::Mask& mask = (forward ? *a.outputs[0] : *a.inputs[0]).region.mask;
  const auto length = [&](std::size_t d) { return mask.ranges[d].end - mask.ranges[d].begin; };
  const kernels::Pairs pairs{.heads = length(0),
                             .queries = length(1),
                             .keys = length(2),
                             .first_query = mask.ranges[1].begin,
                             .first_key = mask.ranges[2].begin};
  const Value<T>& table = forward ? *a.inputs[0] : *a.outputs[0];
  const kernels::DistanceBuckets buckets{.count = table.region.shape()[0],
                                         .both_directions = a.op.kind == OpKind::relative_bias};
  forward ? kernels::relative_bias<T>(pairs, buckets, a.in(0), a.out(0))
          : kernels::relative_bias_gradient<T>(pairs, buckets, a.in(0), a.out(0));
}

/// The elements of a head that a forward operator turns; a fused attention's queries hold several
/// heads in a row, as many as share the keys of one.
std::int64_t head_size(const model::Graph& graph, const model::Operator& rotary) {
  const auto reads = [&](const model::Operator& op) {
    return is_fused_attention(op) && op.pass == model::Pass::forward &&
           op.inputs[0] == rotary.outputs[0];
  };
  const auto core = std::ranges::find_if(graph.operators, reads);
  const std::int64_t turned = graph.tensors[rotary.inputs[0]].shape.back();
  if (core == graph.operators.end()) return turned;
  return turned / graph.tensors[core->outputs[1]].shape.back();  // heads of a group
}

std::string refusal_of_rotary(const model::Graph& graph, const model::Operator& op,
                              Backend /*backend*/) {
  const std::int64_t size = head_size(graph, op.forward >= 0 ? graph.operators[op.forward] : op);
  if (size % 2 == 0) return "";
  return "rotary positions on heads of an odd size, " + std::to_string(size);
}

}  // namespace

std::vector<HeadsCopy> heads_of(const Shapes& s) {
  const model::Annotation& terms = *s.forward().annotation;
  if (s.forward().kind == OpKind::merge_heads) {
    HeadsCopy copy =
        layout_of(terms.inputs[0], s.is_forward() ? *s.inputs[0] : *s.outputs[0],
                  terms.outputs[0][1].identifiers.front(), terms.outputs[0][2].identifiers.front());
    copy.width = copy.inner;
    return {copy};
  }
  const std::string& token = terms.inputs[0][1].identifiers.front();
  const std::string& group = terms.inputs[0][2].identifiers.front();
  const std::vector<const Region*>& heads = s.is_forward() ? s.outputs : s.inputs;
  std::vector<HeadsCopy> copies;
  std::int64_t width = 0;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    copies.push_back(layout_of(terms.outputs[i], *heads[i], token, group));
    copies.back().first = width;
    width += copies.back().inner;
  }
  for (HeadsCopy& copy : copies) copy.width = width;
  return copies;
}

RotaryPositions rotary_of(const Shapes& s) {
  const std::vector<std::int64_t> shape = s.inputs[0]->shape();
  const std::size_t token = place_of(s.forward().annotation->inputs[0], "s");
  const bool of_heads = token + 2 == shape.size();
  const std::int64_t size = of_heads ? shape.back() : head_size(s.graph, s.forward());
  RotaryPositions result{.turn = {.heads = s.inputs[0]->size() / (shape[token] * size),
                                  .sequence = shape[token],
                                  .size = size,
                                  .first = s.inputs[0]->mask.ranges[token].begin},
                         .rows = {}};
  if (of_heads) return result;
  std::int64_t samples = 1;
  for (std::size_t d = 0; d < token; ++d) samples *= shape[d];
  result.rows = {samples, result.turn.heads / samples, size, shape[token], shape[token]};
  return result;
}

Prepending prepending_of(const Shapes& s) {
  const std::vector<std::int64_t> shape = (s.is_forward() ? *s.outputs[0] : *s.inputs[0]).shape();
  const std::size_t rows = shape.size() - 2;  // the dimension in which there are more of them
  const std::int64_t of_sample = rows == 2 ? shape[1] : 1;
  const std::int64_t heads = shape[0] * of_sample, width = shape[rows] * shape[rows + 1];
  const Region& part = s.is_forward() ? *s.inputs[0] : *s.outputs[0];
  const bool of_rows = s.op.pass == model::Pass::weight_gradient;
  return {.heads = heads,
          .of_sample = of_sample,
          .width = width,
          .rows = of_rows ? part.size() / of_sample : width - part.size() / heads};
}

std::vector<Execution> on_heads() {
  std::vector<Execution> rows = {
      computed("split_heads", [](const auto& a) { split_heads(a); }),
      computed("merge_heads", [](const auto& a) { merge_heads(a); }),
      computed("rotary", [](const auto& a) { rotary(a); }),
      computed("repeat", [](const auto& a) { repeat(a); }),
      computed("prepend", [](const auto& a) { prepend(a); }),
  };
  rows[2].refuses = &refusal_of_rotary;
  for (const char* kind : {"relative_bias", "causal_relative_bias"}) {
    rows.push_back(computed(kind, [](const auto& a) { relative_bias(a); }));
    rows.back().not_on_gpu = "biases by distance, as T5's, on a GPU";
  }
  return rows;
}

}  // namespace stratagem::execute

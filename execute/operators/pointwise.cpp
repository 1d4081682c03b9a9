// What works element by element, or adds a vector to every row.
#include <algorithm>
#include <cmath>
#include <utility>

#include "execute/operators/dimensions.hpp"
#include "execute/operators/shapes.hpp"
#include "kernels/activation.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"

namespace stratagem::execute {
namespace {

/// How many vectors an operand has for as many blocks of rows, one after another: experts have one
/// each.
template <typename T>
std::int64_t vectors_of(const Application<T>& a, const std::vector<model::Term>& terms,
                        const Value<T>& vectors) {
  const auto leads = [](const std::vector<model::Term>& of) {
    return of.front().identifiers.front();
  };
  return leads(terms) == leads(a.op.annotation->inputs[0]) ? vectors.region.shape().front() : 1;
}

/// The block of so many equal ones.
template <typename Span>
Span block_of(Span all, std::int64_t blocks, std::int64_t block) {
  const std::size_t size = all.size() / static_cast<std::size_t>(blocks);
  return all.subspan(static_cast<std::size_t>(block) * size, size);
}

/// For every element of the first operand, the place of that of another which has some of its
/// dimensions.
template <typename T>
std::vector<std::size_t> places_beside(const Application<T>& a,
                                       const std::vector<model::Term>& terms,
                                       const Value<T>& other) {
  return places_in(dimensions(terms, other.region.shape()),
                   dimensions(a.op.annotation->inputs[0], a.inputs[0]->region.shape()));
}

/// Has an operand only dimensions of the rows, but not simply their last ones, in their order? (The
/// first may stand before these.)
bool lies_across(const std::vector<model::Term>& rows, const std::vector<model::Term>& vectors) {
  const auto name = [](const model::Term& term) { return term.identifiers.front(); };
  const auto known = [&](const model::Term& term) {
    return std::ranges::find(rows, name(term), name) != rows.end();
  };
  if (!std::ranges::all_of(vectors, known)) return false;
  const std::size_t skipped = name(vectors.front()) == name(rows.front()) ? 1 : 0;
  for (std::size_t i = vectors.size(), j = rows.size(); i-- > skipped;) {
    if (name(vectors[i]) != name(rows[--j])) return true;
  }
  return false;
}

/// The sum of two operands, of which the second may lack dimensions of the first.
template <typename T>
void sum(const Application<T>& a) {
  const Value<T>&rows = *a.inputs[0], &vectors = *a.inputs[1];
  if (lies_across(a.op.annotation->inputs[0], a.op.annotation->inputs[1])) {
    const std::vector<std::size_t> places = places_beside(a, a.op.annotation->inputs[1], vectors);
    for (std::size_t i = 0; i < places.size(); ++i) a.out(0)[i] = a.in(0)[i] + a.in(1)[places[i]];
    return;
  }
  if (vectors.region.size() == rows.region.size())
    return kernels::add<T>(a.in(0), a.in(1), a.out(0));
  const std::int64_t blocks = vectors_of(a, a.op.annotation->inputs[1], vectors);
  const kernels::Rows block{.rows = rows.region.size() / vectors.region.size(),
                            .columns = vectors.region.size() / blocks};
  for (std::int64_t i = 0; i < blocks; ++i)
    kernels::bias_add<T>(block, block_of(a.in(0), blocks, i), block_of(a.in(1), blocks, i),
                         block_of(a.out(0), blocks, i));
}

/// Adds to the gradient of vectors, or of a table, that were added to every row.
template <typename T>
void bias_gradient(const Application<T>& a) {
  const Value<T>&rows = *a.inputs[0], &vectors = *a.outputs[0];
  if (lies_across(a.op.annotation->inputs[0], a.op.annotation->outputs[0])) {
    const std::vector<std::size_t> places = places_beside(a, a.op.annotation->outputs[0], vectors);
    for (std::size_t i = 0; i < places.size(); ++i) a.out(0)[places[i]] += a.in(0)[i];
    return;
  }
  const std::int64_t blocks = vectors_of(a, a.op.annotation->outputs[0], vectors);
  const kernels::Rows block{.rows = rows.region.size() / vectors.region.size(),
                            .columns = vectors.region.size() / blocks};
  std::vector<T> sums(static_cast<std::size_t>(vectors.region.size()));
  for (std::int64_t i = 0; i < blocks; ++i)
    kernels::column_sums<T>(block, block_of(a.in(0), blocks, i),
                            block_of(kernels::Out<T>(sums), blocks, i));
  kernels::add<T>(kernels::In<T>(vectors.data), kernels::In<T>(sums), a.out(0));
}

/// Elements that share one of the mask are dropped together.
template <typename T>
void shared_dropout(const Application<T>& a) {
  const bool forward = a.is_forward();
  const Value<T>& mask = forward ? *a.outputs[1] : *a.inputs[1];
  const std::vector<model::Term>& terms =
      forward ? a.op.annotation->outputs[1] : a.op.annotation->inputs[1];
  const std::vector<std::size_t> places = places_beside(a, terms, mask);
  std::vector<T> scale(mask.bytes.size(), T{1});
  if (forward) {
    const auto [part, random] = dropped_of(shapes_of(a), a.random);
    const std::vector<T> ones = scale;
    kernels::dropout<T>(part, a.dropout, random, ones, scale, a.outputs[1]->bytes);
  } else {
    const std::vector<T> ones = scale;
    kernels::dropout_gradient<T>(a.dropout, ones, mask.bytes, scale);
  }
  for (std::size_t i = 0; i < places.size(); ++i) a.out(0)[i] = a.in(0)[i] * scale[places[i]];
}

template <typename T>
void dropout(const Application<T>& a) {
  if ((a.is_forward() ? *a.outputs[1] : *a.inputs[1]).bytes.size() != a.in(0).size())
    return shared_dropout(a);
  if (a.op.pass != model::Pass::forward)
    return kernels::dropout_gradient<T>(a.dropout, a.in(0), a.inputs[1]->bytes, a.out(0));
  const auto [part, random] = dropped_of(shapes_of(a), a.random);
  kernels::dropout<T>(part, a.dropout, random, a.in(0), a.out(0), a.outputs[1]->bytes);
}

/// Gate and linear part of every row of a projection, each half of it. A plan divides both alike,
/// so the halves are interleaved: element 2i is a gate, 2i + 1 its factor.
template <typename T>
void swiglu(const Application<T>& a) {
  const bool forward = a.op.pass == model::Pass::forward;
  const Elements<T>& both = a.inputs[forward ? 0 : 1]->data;
  const std::size_t half = both.size() / 2;
  std::vector<T> gate(half), up(half), dgate(half), dup(half);
  for (std::size_t i = 0; i < half; ++i) {
    gate[i] = both[2 * i];
    up[i] = both[2 * i + 1];
  }
  using In = kernels::In<T>;
  if (forward) return kernels::swiglu<T>(In(gate), In(up), a.out(0));
  kernels::swiglu_gradient<T>(a.in(0), In(gate), In(up), kernels::Out<T>(dgate),
                              kernels::Out<T>(dup));
  for (std::size_t i = 0; i < half; ++i) {
    a.outputs[0]->data[2 * i] = dgate[i];
    a.outputs[0]->data[2 * i + 1] = dup[i];
  }
}

/// A gated unit times a weight of each row, and gradients of either.
template <typename T>
void weighted_swiglu(const Application<T>& a) {
  const std::size_t before = a.is_forward() ? 0 : 1;  // what comes back stands before the input
  const Elements<T>& both = a.inputs[before]->data;
  const bool of_weights =
      !a.is_forward() && a.graph.gradient_of[a.forward().inputs[1]] == a.op.outputs[0];
  const kernels::Rows rows = rows_of(*a.inputs[before]);
  const std::int64_t half = rows.columns / 2;
  for (std::int64_t i = 0; i < rows.rows * half; ++i) {
    const T gate = both[2 * i], up = both[2 * i + 1];
    const T open = 1 / (1 + std::exp(-gate)), y = gate * open * up;
    if (a.is_forward()) {
      a.out(0)[i] = y * a.in(1)[i / half];
    } else if (of_weights) {
      a.out(0)[i / half] += a.in(0)[i] * y;
    } else {
      const T dy = a.in(0)[i] * a.in(2)[i / half];
      a.out(0)[2 * i] += dy * up * open * (1 + gate * (1 - open));
      a.out(0)[2 * i + 1] += dy * gate * open;
    }
  }
}

/// x * sigmoid(x): a gated unit whose other factor is 1.
template <typename T>
void silu(const Application<T>& a) {
  const bool forward = a.op.pass == model::Pass::forward;
  const std::vector<T> ones(a.outputs[0]->data.size(), T{1});
  std::vector<T> unused(ones.size());
  if (forward) return kernels::swiglu<T>(a.in(0), kernels::In<T>(ones), a.out(0));
  kernels::swiglu_gradient<T>(a.in(0), a.in(1), kernels::In<T>(ones), a.out(0),
                              kernels::Out<T>(unused));
}

Execution hyperbolic_tangent() {
  Execution row = computed("tanh", [](const auto& a) {
    a.is_forward() ? kernels::tanh(a.in(0), a.out(0))
                   : kernels::tanh_gradient(a.in(0), a.in(1), a.out(0));
  });
  row.not_on_gpu = "tanh on a GPU";
  return row;
}

Execution weighted_swiglus() {
  Execution row = computed("weighted_swiglu", [](const auto& a) { weighted_swiglu(a); });
  row.not_on_gpu = "mixtures of experts on a GPU";
  return row;
}

template <typename T>
void embedding(const Application<T>& a) {
  const auto [first, width] = lookup_of(shapes_of(a));
  if (a.op.pass == model::Pass::forward)
    return kernels::embedding<T>(width, first, a.inputs[0]->numbers, a.in(1), a.out(0));
  kernels::embedding_gradient<T>(width, first, a.in(0), a.inputs[1]->numbers, a.out(0));
}

}  // namespace

Dropped dropped_of(const Shapes& s, kernels::RandomStream random) {
  const auto origin_of = [&](model::TensorId tensor) {
    return model::origin_of(s.graph.tensors[tensor], tensor);
  };
  const model::Origin mask = origin_of(s.op.outputs[1]);
  const Region& region = *s.outputs[1];
  kernels::Part part{.whole = mask.shape, .begin = mask.begin, .extent = region.shape()};
  for (std::size_t d = 0; d < part.begin.size(); ++d) part.begin[d] += region.mask.ranges[d].begin;
  random.stream = random.stream * 0x9E3779B97F4A7C15U +
                  static_cast<std::uint64_t>(origin_of(s.op.outputs[0]).tensor);
  return {.part = std::move(part), .random = random};
}

Lookup lookup_of(const Shapes& s) {
  const Region& table = s.is_forward() ? *s.inputs[1] : *s.outputs[0];
  return {.first = table.mask.ranges[0].begin, .width = table.shape().back()};
}

std::vector<Execution> pointwise() {
  const auto adds = [](const auto& a) { sum(a); };
  const auto drops = [](const auto& a) { dropout(a); };
  return {
      computed("add", adds),
      computed("bias_add", adds),
      computed("gradient_sum", adds),
      computed("bias_gradient", [](const auto& a) { bias_gradient(a); }),
      computed("multiply", [](const auto& a) { kernels::multiply(a.in(0), a.in(1), a.out(0)); }),
      computed("identity", [](const auto& a) { std::ranges::copy(a.in(0), a.out(0).begin()); }),
      computed("gelu",
               [](const auto& a) {
                 a.is_forward() ? kernels::gelu(a.in(0), a.out(0))
                                : kernels::gelu_gradient(a.in(0), a.in(1), a.out(0));
               }),
      computed("relu",
               [](const auto& a) {
                 a.is_forward() ? kernels::relu(a.in(0), a.out(0))
                                : kernels::relu_gradient(a.in(0), a.in(1), a.out(0));
               }),
      computed("squared_relu",
               [](const auto& a) {
                 a.is_forward() ? kernels::squared_relu(a.in(0), a.out(0))
                                : kernels::squared_relu_gradient(a.in(0), a.in(1), a.out(0));
               }),
      computed("sigmoid",
               [](const auto& a) {
                 a.is_forward() ? kernels::sigmoid(a.in(0), a.out(0))
                                : kernels::sigmoid_gradient(a.in(0), a.in(1), a.out(0));
               }),
      hyperbolic_tangent(),
      computed("silu", [](const auto& a) { silu(a); }),
      computed("swiglu", [](const auto& a) { swiglu(a); }),
      weighted_swiglus(),
      computed("dropout", drops),
      computed("attention_dropout", drops),
      computed("embedding", [](const auto& a) { embedding(a); }),
  };
}

}  // namespace stratagem::execute

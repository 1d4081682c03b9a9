// Any contraction of two operands as a batched matrix product.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/input_error.hpp"
#include "execute/operators/shapes.hpp"

namespace stratagem::execute {
namespace {

using Names = std::vector<std::string>;

/// Dimensions of an operand by name, with their local sizes.
struct Dimensions {
  Names names;
  std::vector<std::int64_t> sizes;

  [[nodiscard]] bool has(const std::string& name) const {
    return std::ranges::find(names, name) != names.end();
  }
  /// Elements of the dimensions from `begin` to `end`.
  [[nodiscard]] std::int64_t elements(std::size_t begin, std::size_t end) const {
    std::int64_t product = 1;
    for (std::size_t d = begin; d < end; ++d) product *= sizes[d];
    return product;
  }
};

Dimensions dimensions(const std::vector<model::Term>& terms, std::vector<std::int64_t> sizes) {
  Dimensions result{.names = {}, .sizes = std::move(sizes)};
  for (const model::Term& term : terms) result.names.push_back(term.identifiers.front());
  return result;
}

/// An operand as a matrix of each batch: its dimensions are those of the batch, then those of one
/// side and of the other.
struct Matrix {
  std::int64_t batch = 1, rows = 1, columns = 1;
  bool transposed = false;  ///< the side that was asked for first comes last
};

/// `first` tells the dimensions of the side that is to give rows. nullopt: the sides are mixed.
template <typename First>
std::optional<Matrix> matrix(const Dimensions& operand, std::size_t batch, const First& first) {
  const std::size_t all = operand.names.size();
  const bool begins = batch == all || first(operand.names[batch]);
  std::size_t border = batch;
  while (border < all && first(operand.names[border]) == begins) ++border;
  for (std::size_t d = border; d < all; ++d) {
    if (first(operand.names[d]) == begins) return std::nullopt;
  }
  const std::int64_t one = operand.elements(batch, border), other = operand.elements(border, all);
  return Matrix{.batch = operand.elements(0, batch),
                .rows = begins ? one : other,
                .columns = begins ? other : one,
                .transposed = !begins};
}

/// rows times columns, of which the left operand is the first or, `swapped`, the second.
struct Matrices {
  Matrix rows, columns;
  bool swapped = false;
};

std::optional<Matrices> matrices_of(const Dimensions& left, const Dimensions& right,
                                    const Dimensions& result) {
  std::size_t batch = 0;
  while (batch < left.names.size() && right.has(left.names[batch]) && result.has(left.names[batch]))
    ++batch;
  const auto summed = [&](const std::string& name) { return !result.has(name); };
  const auto kept = [&](const std::string& name) { return result.has(name); };
  // The result may have the rows of either operand first.
  const bool swapped = batch < result.names.size() && !left.has(result.names[batch]) &&
                       right.has(result.names[batch]);
  const Dimensions& first = swapped ? right : left;
  const Dimensions& second = swapped ? left : right;
  const auto rows = matrix(first, batch, kept);
  const auto columns = matrix(second, batch, summed);
  const auto product =
      matrix(result, batch, [&](const std::string& name) { return first.has(name); });
  if (!rows || !columns || !product || product->transposed || rows->columns != columns->rows ||
      rows->batch != columns->batch)
    return std::nullopt;
  return Matrices{.rows = *rows, .columns = *columns, .swapped = swapped};
}

std::string refusal_of_product(const model::Graph& /*graph*/, const model::Operator& op,
                               Backend /*backend*/) {
  const auto named = [](const std::vector<model::Term>& terms) {
    return dimensions(terms, std::vector<std::int64_t>(terms.size(), 1));
  };
  const bool fits = matrices_of(named(op.annotation->inputs[0]), named(op.annotation->inputs[1]),
                                named(op.annotation->outputs[0]))
                        .has_value();
  return fits ? "" : "a product whose dimensions do not lie side by side";
}

template <typename T>
void contraction(const Application<T>& a) {
  const auto [shape, swapped] = product_of(shapes_of(a));
  kernels::gemm<T>(shape, a.in(swapped ? 1 : 0), a.in(swapped ? 0 : 1), a.out(0));
}

}  // namespace

Product product_of(const Shapes& s) {
  const auto matrices = matrices_of(dimensions(s.op.annotation->inputs[0], s.inputs[0]->shape()),
                                    dimensions(s.op.annotation->inputs[1], s.inputs[1]->shape()),
                                    dimensions(s.op.annotation->outputs[0], s.outputs[0]->shape()));
  expects(matrices.has_value(), "operands of a product fit each other");
  const auto& [rows, columns, swapped] = *matrices;
  return {.shape = {.m = rows.rows,
                    .n = columns.columns,
                    .k = rows.columns,
                    .batch = rows.batch,
                    .transpose_a = rows.transposed,
                    .transpose_b = columns.transposed,
                    .beta = s.op.pass == model::Pass::weight_gradient ? 1.0 : 0.0},
          .swapped = swapped};
}

std::vector<Execution> products() {
  Execution row = computed("contraction", [](const auto& a) { contraction(a); });
  row.refuses = &refusal_of_product;
  return {row};
}

}  // namespace stratagem::execute

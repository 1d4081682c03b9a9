// Any contraction of two operands as a batched matrix product.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/input_error.hpp"
#include "execute/operators/dimensions.hpp"
#include "execute/operators/shapes.hpp"

namespace stratagem::execute {
namespace {

using Names = std::vector<std::string>;

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

/// Dimensions of a contraction by their part in a product of matrices.
struct Roles {
  Names batch, rows, columns, summed;
};

/// nullopt: some dimension is of one operand alone.
std::optional<Roles> roles_of(const Dimensions& left, const Dimensions& right,
                              const Dimensions& result) {
  Roles roles;
  for (const std::string& name : result.names) {
    const bool in_left = left.has(name), in_right = right.has(name);
    if (!in_left && !in_right) return std::nullopt;
    (in_left && in_right ? roles.batch : in_left ? roles.rows : roles.columns).push_back(name);
  }
  for (const std::string& name : left.names) {
    if (result.has(name)) continue;
    if (!right.has(name)) return std::nullopt;
    roles.summed.push_back(name);
  }
  const auto known = [&](const std::string& name) { return result.has(name) || left.has(name); };
  if (!std::ranges::all_of(right.names, known)) return std::nullopt;
  return roles;
}

Names in_order(Names all, const Names& more, const Names& last) {
  all.insert(all.end(), more.begin(), more.end());
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

template <typename T>
std::vector<T> rearranged(kernels::In<T> all, const std::vector<std::size_t>& places) {
  std::vector<T> result;
  result.reserve(places.size());
  for (const std::size_t place : places) result.push_back(all[place]);
  return result;
}

/// The operands and the result of a contraction.
struct Contracted {
  Dimensions left, right, result;

  [[nodiscard]] bool lies_side_by_side() const {
    return matrices_of(left, right, result).has_value();
  }
};

/// As a product of copies in which the dimensions of each side lie side by side.
template <typename T>
void contract_copies(const Application<T>& a, const Contracted& of) {
  const auto roles = roles_of(of.left, of.right, of.result);
  expects(roles.has_value(), "operands of a contraction fit each other");
  const auto& [batch, rows, columns, summed] = *roles;
  const Dimensions left = of.left.of(in_order(batch, rows, summed));
  const Dimensions right = of.right.of(in_order(batch, summed, columns));
  const std::vector<T> x = rearranged<T>(a.in(0), places_in(of.left, left));
  const std::vector<T> y = rearranged<T>(a.in(1), places_in(of.right, right));
  const std::vector<std::size_t> to =
      places_in(of.result, of.result.of(in_order(batch, rows, columns)));
  std::vector<T> product(to.size());
  kernels::gemm<T>({.m = of.left.of(rows).elements(),
                    .n = of.right.of(columns).elements(),
                    .k = of.left.of(summed).elements(),
                    .batch = of.left.of(batch).elements()},
                   x, y, std::span<T>(product));
  const bool adds = a.op.pass == model::Pass::weight_gradient;
  for (std::size_t i = 0; i < to.size(); ++i)
    a.out(0)[to[i]] = product[i] + (adds ? a.out(0)[to[i]] : T{0});
}

std::string refusal_of_product(const model::Graph& /*graph*/, const model::Operator& op,
                               Backend backend) {
  const auto named = [](const std::vector<model::Term>& terms) {
    return dimensions(terms, std::vector<std::int64_t>(terms.size(), 1));
  };
  const Contracted of{named(op.annotation->inputs[0]), named(op.annotation->inputs[1]),
                      named(op.annotation->outputs[0])};
  if (of.lies_side_by_side()) return "";
  if (backend == Backend::cuda)
    return "a product whose dimensions do not lie side by side, on a GPU";
  return roles_of(of.left, of.right, of.result) ? ""
                                                : "a sum over a dimension of one operand alone";
}

template <typename T>
void contraction(const Application<T>& a) {
  const Shapes s = shapes_of(a);
  const model::Annotation& terms = *s.op.annotation;
  const Contracted of{dimensions(terms.inputs[0], s.inputs[0]->shape()),
                      dimensions(terms.inputs[1], s.inputs[1]->shape()),
                      dimensions(terms.outputs[0], s.outputs[0]->shape())};
  if (!of.lies_side_by_side()) return contract_copies(a, of);
  const auto [shape, swapped] = product_of(s);
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

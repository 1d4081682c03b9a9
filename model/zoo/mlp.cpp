// Builds matrices, activation and product, with the names that frameworks give them.
#include "model/zoo/mlp.hpp"

#include <utility>

#include "base/input_error.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::model {
namespace {

/// Matrices or vectors of these dimensions, one for every expert if there are experts.
std::vector<std::int64_t> shape_of_each(const Rows& rows, std::vector<std::int64_t> shape) {
  if (rows.experts > 0) shape.insert(shape.begin(), rows.experts);
  return shape;
}
std::string dims_of_each(const Rows& rows, const std::string& dims) {
  return rows.experts > 0 ? "expert " + dims : dims;
}

/// An operator row by row, from one width to another.
std::string row_by_row(const Rows& rows, const std::string& from, const std::string& to = "n") {
  return rows.dims + " " + from + " -> " + rows.dims + " " + to;
}

TensorId bend(Builder& build, const Rows& rows, TensorId x, const Mlp& mlp) {
  const std::string name = mlp.name + "." + to_text(mlp.activation);
  const TensorId y = activation(build, rows, name + ".out", build[x].shape.back(), build[x].type);
  build.add(mlp.activation, name, row_by_row(rows, "n"), {x}, {y});
  return y;
}

TensorId plain(Builder& build, const Rows& rows, TensorId x, const Mlp& mlp) {
  const std::int64_t hidden = build[x].shape.back();
  const TensorId up = linear(build, rows, mlp.name + ".fc1", x, mlp.inner, mlp.bias);
  const TensorId bent = bend(build, rows, up, mlp);
  return linear(build, rows, mlp.name + ".fc2", bent, hidden, mlp.bias);
}

TensorId fused_gate(Builder& build, const Rows& rows, TensorId x, const Mlp& mlp) {
  const TensorId both = linear(build, rows, mlp.name + ".gate_up", x, 2 * mlp.inner, mlp.bias);
  const TensorId y = activation(build, rows, mlp.name + ".swiglu.out", mlp.inner, build[x].type);
  if (rows.weights < 0) {
    build.add(OpKind::swiglu, mlp.name + ".swiglu", row_by_row(rows, "(n two^)"), {both}, {y});
  } else {
    build.add(operator_named("weighted_swiglu"), mlp.name + ".swiglu",
              rows.dims + " (n two^), " + rows.dims + " -> " + rows.dims + " n",
              {both, rows.weights}, {y});
  }
  return y;
}

TensorId gate_in_parts(Builder& build, const Rows& rows, TensorId x, const Mlp& mlp) {
  const TensorId gate = linear(build, rows, mlp.name + ".gate", x, mlp.inner, mlp.bias);
  const TensorId bent = bend(build, rows, gate, mlp);
  const TensorId up = linear(build, rows, mlp.name + ".up", x, mlp.inner, mlp.bias);
  const TensorId y = activation(build, rows, mlp.name + ".gated.out", mlp.inner, build[x].type);
  const std::string factor = rows.dims + " n, ";
  build.add(OpKind::multiply, mlp.name + ".gated", factor + row_by_row(rows, "n"), {bent, up}, {y});
  return y;
}

}  // namespace

Rows tokens(std::int64_t batch, std::int64_t sequence) {
  return {.dims = "b s", .shape = {batch, sequence}};
}

TensorId activation(Builder& build, const Rows& rows, const std::string& name, std::int64_t width,
                    DataType type) {
  std::vector<std::int64_t> shape = rows.shape;
  shape.push_back(width);
  return build.tensor(name, std::move(shape), type, Role::activation, rows.filled);
}

TensorId linear(Builder& build, const Rows& rows, const std::string& name, TensorId x,
                std::int64_t out, Bias bias) {
  const std::int64_t in = build[x].shape.back();
  const DataType type = build[x].type;
  const bool adds = bias == Bias::added;
  const TensorId weight = build.parameter(name + ".weight", shape_of_each(rows, {out, in}), type);
  const TensorId vector =
      adds ? build.parameter(name + ".bias", shape_of_each(rows, {out}), type) : -1;
  const TensorId product = activation(build, rows, name + (adds ? ".product" : ".out"), out, type);
  build.add(OpKind::contraction, name,
            rows.dims + " k+, " + dims_of_each(rows, "n k+") + " -> " + rows.dims + " n",
            {x, weight}, {product});
  if (!adds) return product;
  const TensorId y = activation(build, rows, name + ".out", out, type);
  build.add(OpKind::bias_add, name + ".bias_add",
            rows.dims + " n, " + dims_of_each(rows, "n") + " -> " + rows.dims + " n",
            {product, vector}, {y});
  return y;
}

TensorId mlp(Builder& build, const Rows& rows, TensorId x, const Mlp& mlp) {
  expects(rows.weights < 0 || mlp.activation == OpKind::swiglu, "weights of rows want a SwiGLU");
  if (!mlp.gated()) return plain(build, rows, x, mlp);
  const TensorId bent = mlp.activation == OpKind::swiglu ? fused_gate(build, rows, x, mlp)
                                                         : gate_in_parts(build, rows, x, mlp);
  return linear(build, rows, mlp.name + ".down", bent, build[x].shape.back(), mlp.bias);
}

}  // namespace stratagem::model

// Builds layers along the axes of a plane.
#include "model/zoo/axial.hpp"

#include <utility>

namespace stratagem::model {

TensorId Axial::activation(const std::string& name, std::vector<std::int64_t> shape,
                           DataType type) {
  return build_.tensor(name, std::move(shape), type, Role::activation);
}

Plane Axial::like(const std::string& name, const Plane& x, std::int64_t width) {
  std::vector<std::int64_t> shape = build_[x.tensor].shape;
  shape.back() = width;
  return {activation(name + ".out", std::move(shape), build_[x.tensor].type), x.first, x.second};
}

Plane Axial::norm(const std::string& name, const Plane& x) {
  const DataType type = build_[x.tensor].type;
  const TensorId scale = build_.parameter(name + ".scale", {width(x)}, type);
  const TensorId shift = build_.parameter(name + ".shift", {width(x)}, type);
  Plane y = like(name, x, width(x));
  std::vector<std::int64_t> two = build_[x.tensor].shape;
  two.back() = 2;  // mean and reciprocal deviation of every place, in fp32
  const TensorId statistics =
      build_.tensor(name + ".statistics", two, DataType::fp32, Role::statistic);
  const std::string d = x.dims();
  build_.add(OpKind::layer_norm, name, d + " c^, c^, c^ -> " + d + " c^, " + d + " two^",
             {x.tensor, scale, shift}, {y.tensor, statistics});
  return y;
}

Plane Axial::linear(const std::string& name, const Plane& x, std::int64_t out, bool bias) {
  const DataType type = build_[x.tensor].type;
  const std::string d = x.dims();
  const TensorId weight = build_.parameter(name + ".weight", {out, width(x)}, type);
  Plane y = like(name + (bias ? ".product" : ""), x, out);
  build_.add(OpKind::contraction, name, d + " k+, n k+ -> " + d + " n", {x.tensor, weight},
             {y.tensor});
  if (!bias) return y;
  const TensorId vector = build_.parameter(name + ".bias", {out}, type);
  Plane sum = like(name, x, out);
  build_.add(OpKind::bias_add, name + ".bias_add", d + " n, n -> " + d + " n", {y.tensor, vector},
             {sum.tensor});
  return sum;
}

Plane Axial::unary(OpKind kind, const std::string& name, const Plane& x) {
  Plane y = like(name, x, width(x));
  const std::string all = x.dims() + " c";
  build_.add(kind, name, all + " -> " + all, {x.tensor}, {y.tensor});
  return y;
}

Plane Axial::product(const std::string& name, const Plane& a, const Plane& b) {
  Plane y = like(name, a, width(a));
  const std::string all = a.dims() + " c";
  build_.add(OpKind::multiply, name, all + ", " + all + " -> " + all, {a.tensor, b.tensor},
             {y.tensor});
  return y;
}

Plane Axial::sum(const std::string& name, const Plane& branch, const Plane& x) {
  Plane y = like(name, x, width(x));
  const std::string all = x.dims() + " c";
  build_.add(OpKind::add, name, all + ", " + all + " -> " + all, {branch.tensor, x.tensor},
             {y.tensor});
  return y;
}

Plane Axial::dropout(const std::string& name, const Plane& x, const std::string& shared) {
  Plane y = like(name, x, width(x));
  std::vector<std::int64_t> shape = build_[x.tensor].shape;
  shape.erase(shape.begin() + (shared == x.first ? 1 : 2));
  const TensorId mask = build_.tensor(name + ".mask", shape, DataType::int8, Role::mask);
  const std::string all = x.dims() + " c";
  const std::string kept = shared == x.first ? x.second : x.first;
  build_.add(OpKind::dropout, name, all + " -> " + all + ", b " + kept + " c", {x.tensor},
             {y.tensor, mask});
  return y;
}

TensorId Axial::pair_bias(const std::string& name, const Plane& z, std::int64_t heads) {
  const std::vector<std::int64_t>& shape = build_[z.tensor].shape;
  const DataType type = build_[z.tensor].type;
  const TensorId bias = activation(name + ".out", {shape[0], heads, shape[1], shape[2]}, type);
  const TensorId weight = build_.parameter(name + ".weight", {heads, width(z)}, type);
  build_.add(OpKind::contraction, name,
             z.dims() + " k+, heads k+ -> b heads " + z.first + " " + z.second, {z.tensor, weight},
             {bias});
  return bias;
}

/// Softmax of q k^T + bias, times v; `inner` are the places that attend, "t" those attended to.
TensorId Axial::attend(const std::string& name, const std::vector<TensorId>& qkv,
                       const std::string& outer, const std::string& inner, TensorId bias,
                       const std::string& bias_dims) {
  const std::vector<std::int64_t> per_head = build_[qkv[0]].shape;
  const DataType type = build_[qkv[0]].type;
  std::vector<std::int64_t> square = per_head;
  square.back() = per_head[3];
  const std::string batch = "b " + outer + " heads ";
  const std::string places = batch + inner + " t";
  TensorId scores = activation(name + ".scores", square, type);
  build_.add(OpKind::contraction, name + ".scores",
             batch + inner + " d+, " + batch + "t d+ -> " + places, {qkv[0], qkv[1]}, {scores});
  if (bias >= 0) {
    const TensorId biased = activation(name + ".biased", square, type);
    build_.add(OpKind::add, name + ".add_bias", places + ", b heads " + bias_dims + " -> " + places,
               {scores, bias}, {biased});
    scores = biased;
  }
  const TensorId probabilities = activation(name + ".probabilities", square, type);
  build_.add(OpKind::softmax, name + ".softmax", places + "^ -> " + places + "^", {scores},
             {probabilities});
  const TensorId context = activation(name + ".context", per_head, type);
  build_.add(OpKind::contraction, name + ".context",
             places + "+, " + batch + "t d -> " + batch + inner + " d", {probabilities, qkv[2]},
             {context});
  return context;
}

Plane Axial::gated_attention(const std::string& name, const Plane& x, Along along, Heads heads,
                             TensorId bias, const std::string& bias_dims) {
  const std::int64_t inner_width = heads.count * heads.width;
  const bool second = along == Along::second;
  const std::string& outer = second ? x.first : x.second;
  const std::string& inner = second ? x.second : x.first;
  const std::vector<std::int64_t>& shape = build_[x.tensor].shape;
  const std::vector<std::int64_t> per_head = {shape[0], second ? shape[1] : shape[2], heads.count,
                                              second ? shape[2] : shape[1], heads.width};
  const DataType type = build_[x.tensor].type;
  const Plane joint = linear(name + ".qkv", x, 3 * inner_width, false);
  std::vector<TensorId> qkv;
  for (const std::string one : {".q", ".k", ".v"})
    qkv.push_back(activation(name + one, per_head, type));
  const std::string head = "b " + outer + " heads " + inner + " d^";
  build_.add(OpKind::split_heads, name + ".split_heads",
             x.dims() + " (heads e^) -> " + head + ", " + head + ", " + head, {joint.tensor}, qkv);
  const Plane gate =
      unary(OpKind::sigmoid, name + ".gate.sigmoid", linear(name + ".gate", x, inner_width));
  const TensorId context = attend(name, qkv, outer, inner, bias, bias_dims);
  const Plane merged = like(name + ".merged", x, inner_width);
  build_.add(OpKind::merge_heads, name + ".merge_heads", head + " -> " + x.dims() + " (heads d^)",
             {context}, {merged.tensor});
  return linear(name + ".projection", product(name + ".gated", merged, gate), width(x));
}

Plane Axial::transition(const std::string& name, const Plane& x) {
  const Plane up = linear(name + ".fc1", norm(name + ".norm", x), 4 * width(x));
  const Plane down = linear(name + ".fc2", unary(OpKind::relu, name + ".relu", up), width(x));
  return sum(name + ".residual", down, x);
}

}  // namespace stratagem::model

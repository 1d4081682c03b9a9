// Layers of networks that work along the axes of two-dimensional representations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/builder.hpp"

namespace stratagem::model {

/// A representation: a tensor of shape (batch, first, second, width) and what annotations call its
/// two axes.
struct Plane {
  TensorId tensor = -1;
  std::string first, second;

  /// The three leading dimensions in an annotation: "b i j".
  [[nodiscard]] std::string dims() const { return "b " + first + " " + second; }
};

/// Heads of `width` numbers each.
struct Heads {
  std::int64_t count = 0;
  std::int64_t width = 0;
};

/// Which axis of a plane an attention runs along; the other one is a batch of independent
/// attentions.
enum class Along : std::uint8_t { first, second };

/// Adds layers to a graph; names are prefixed as the builder's segments are.
class Axial {
 public:
  explicit Axial(Builder& build) : build_(build) {}

  TensorId activation(const std::string& name, std::vector<std::int64_t> shape, DataType type);
  /// Layer normalisation over the last dimension.
  Plane norm(const std::string& name, const Plane& x);
  /// A matrix over the last dimension; with or without bias.
  Plane linear(const std::string& name, const Plane& x, std::int64_t out, bool bias = true);
  Plane unary(OpKind kind, const std::string& name, const Plane& x);
  Plane product(const std::string& name, const Plane& a, const Plane& b);
  Plane sum(const std::string& name, const Plane& branch, const Plane& x);
  /// One mask for all places along an axis, which annotations call `shared`.
  Plane dropout(const std::string& name, const Plane& x, const std::string& shared);

  /// sigmoid(W_g x + b_g) * attention of q, k, v along one axis, then a matrix with bias:
  ///   probabilities = softmax(q k^T / sqrt(width) + bias)
  /// `x` is normed already. `bias`, -1 for none, has the shape (batch, heads, n, n) over the axis
  /// along which attention runs; annotations call its last two dimensions `bias_dims`.
  Plane gated_attention(const std::string& name, const Plane& x, Along along, Heads heads,
                        TensorId bias, const std::string& bias_dims);
  /// A matrix without bias from the last dimension to (batch, heads, first, second).
  TensorId pair_bias(const std::string& name, const Plane& z, std::int64_t heads);
  /// x + W_2 relu(W_1 norm(x) + b_1) + b_2, with four times the width between.
  Plane transition(const std::string& name, const Plane& x);

 private:
  [[nodiscard]] std::int64_t width(const Plane& x) const { return build_[x.tensor].shape.back(); }
  Plane like(const std::string& name, const Plane& x, std::int64_t width);
  TensorId attend(const std::string& name, const std::vector<TensorId>& qkv,
                  const std::string& outer, const std::string& inner, TensorId bias,
                  const std::string& bias_dims);

  Builder& build_;
};

}  // namespace stratagem::model

// Linear layers and MLPs, on the tokens of samples or on the slots of experts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/builder.hpp"

namespace stratagem::model {

/// What a layer computes row by row: a tensor of rows is of this shape, and as wide as they are.
struct Rows {
  std::string dims;                 ///< names of the shape's dimensions
  std::vector<std::int64_t> shape;  ///< without the width
  std::int64_t experts = 0;         ///< the first dimension, each with matrices of its own; 0: none
  double filled = 1;                ///< see Tensor
  TensorId weights = -1;            ///< of each row, for what a swiglu leaves; -1: none
};

/// Rows (batch, sequence) of tokens.
Rows tokens(std::int64_t batch, std::int64_t sequence);

/// An activation of so many numbers a row.
TensorId activation(Builder& build, const Rows& rows, const std::string& name, std::int64_t width,
                    DataType type);

enum class Bias : bool { none, added };

/// y = W x, or W x + b, of `out` numbers a row.
TensorId linear(Builder& build, const Rows& rows, const std::string& name, TensorId x,
                std::int64_t out, Bias bias);

/// gelu, relu and squared_relu: W_2 f(W_1 x + b_1) + b_2. silu and swiglu: W_down(silu(W_gate x) *
/// W_up x); swiglu has one matrix for gate and factor, and one kernel that keeps its input only.
struct Mlp {
  std::int64_t inner = 0;  ///< width between the matrices
  OpKind activation = OpKind::gelu;
  Bias bias = Bias::added;
  std::string name = "mlp";  ///< of its operators, before a point

  [[nodiscard]] bool gated() const {
    return activation == OpKind::silu || activation == OpKind::swiglu;
  }
};
TensorId mlp(Builder& build, const Rows& rows, TensorId x, const Mlp& mlp);

}  // namespace stratagem::model

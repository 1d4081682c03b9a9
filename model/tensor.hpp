// Tensors of a model: named dimensions, data type, and what they are for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::model {

/// tf32 is how tensor cores take fp32 numbers: fp32 in memory, 10 bits of mantissa in products.
/// Numbers of 8 and 4 bits are multiples of a scale: in fp8 of one for the whole tensor, otherwise
/// of one for each block of a row.
enum class DataType : std::uint8_t {
  fp32,
  fp16,
  bf16,
  int8,
  int64,
  fp64,
  fp8,
  fp8_blocks,
  mxfp8,
  nvfp4,
  tf32
};
/// All of them, in the order in which messages list them.
const std::vector<DataType>& data_types();
/// Bytes of one element, with its share of the scale of its block.
Bytes size_of(DataType);
/// The same of a linear layer's weight, where blocks may be squares.
Bytes size_in_weights(DataType);
std::string to_text(DataType);
/// Are its numbers multiples of a scale?
bool is_scaled(DataType);
/// Elements of a row that share a scale; 0 where the whole tensor does, or has none.
std::int64_t block_of(DataType);

enum class Role : std::uint8_t {
  input,
  cache,  ///< keys and values of tokens, which stay from pass to pass on the device that reads them
  parameter,
  activation,
  gradient,
  statistic,
  mask
};
/// Is it an input or a KV cache? No operator computes it, and no message brings it.
constexpr bool is_given(Role role) { return role == Role::input || role == Role::cache; }

using TensorId = int;

/// The tensor that another one is a part of, and where it begins in it, dimension by dimension.
struct Origin {
  TensorId tensor = -1;
  std::vector<std::int64_t> shape;  ///< of the whole
  std::vector<std::int64_t> begin;
};

/// A logical tensor of one micro-batch. `shape` is in the order in which annotations name its
/// dimensions.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  DataType type = DataType::fp16;
  Role role = Role::activation;
  bool requires_grad = true;
  /// Share of its elements that the model means: of the slots of experts those that a token takes.
  double filled = 1;
  /// Of what divide() made of a model's tensor; a gradient has none.
  std::optional<Origin> origin = {};
};

/// Itself, from the beginning, unless it is a part.
Origin origin_of(const Tensor& tensor, TensorId id);

std::int64_t element_count(const Tensor&);
Bytes bytes(const Tensor&);

}  // namespace stratagem::model

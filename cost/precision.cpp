// The table of precisions.
#include "cost/precision.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::cost {

const std::vector<Precision>& precisions() {
  using enum model::DataType;
  static const std::vector<Precision> table = {
      {"fp16", "mixed: weights, activations, gradients in fp16, weights once more in fp32", fp16,
       fp16, fp16, true},
      {"fp16-fp32-gradients", "fp16, with gradients of weights added up and reduced in fp32", fp16,
       fp32, fp16, true},
      {"bf16", "the same as fp16 with bf16", bf16, bf16, bf16, true},
      {"bf16-fp32-gradients", "bf16, with gradients of weights added up and reduced in fp32", bf16,
       fp32, bf16, true},
      {"fp8", "bf16, with linear layers but logits in fp8 (Transformer Engine)", bf16, bf16, fp8,
       true},
      {"fp8-fp32-gradients", "the same, with gradients of weights added up and reduced in fp32",
       bf16, fp32, fp8, true},
      {"tf32", "everything in fp32, matrix products on tensor cores in TF32", fp32, fp32, tf32,
       false},
      {"fp32", "everything in fp32", fp32, fp32, fp32, false},
  };
  return table;
}

const Precision& precision_named(const std::string& name) {
  const auto found = std::ranges::find(precisions(), name, &Precision::name);
  expects(found != precisions().end(), "a precision is one of the table");
  return *found;
}

}  // namespace stratagem::cost

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
      {"fp8", "bf16, with linear layers but logits in fp8, scales of earlier values (delayed)",
       bf16, bf16, fp8, true},
      {"fp8-fp32-gradients", "the same, with gradients of weights added up and reduced in fp32",
       bf16, fp32, fp8, true},
      {"fp8-current", "as fp8, with scales of the tensor's own largest value", bf16, bf16, fp8,
       true, true},
      {"fp8-current-fp32-gradients", "the same, with gradients in fp32", bf16, fp32, fp8, true,
       true},
      {"fp8-blocks", "as fp8, with a scale for each 128 elements of a row", bf16, bf16, fp8_blocks,
       true},
      {"fp8-blocks-fp32-gradients", "the same, with gradients in fp32", bf16, fp32, fp8_blocks,
       true},
      {"mxfp8", "as fp8, with a scale for each 32 elements of a row", bf16, bf16, mxfp8, true},
      {"mxfp8-fp32-gradients", "the same, with gradients in fp32", bf16, fp32, mxfp8, true},
      {"nvfp4", "bf16, with linear layers but logits in 4 bits, a scale for each 16 elements", bf16,
       bf16, nvfp4, true, true},
      {"nvfp4-fp32-gradients", "the same, with gradients in fp32", bf16, fp32, nvfp4, true, true},
      {"tf32", "everything in fp32, matrix products on tensor cores in TF32", fp32, fp32, tf32,
       false},
      {"fp32", "everything in fp32", fp32, fp32, fp32, false},
  };
  return table;
}

void choose_copies(Precision& precision, int compute_capability) {
  const bool any_order = compute_capability >= 100 && compute_capability / 10 != 12;
  precision.copies = any_order && model::block_of(precision.products) == 0 ? 1 : 2;
}

bool is_variant_of(const Precision& precision, const std::string& base) {
  return precision.name == base || precision.name == base + "-fp32-gradients";
}

const Precision& precision_named(const std::string& name) {
  const auto found = std::ranges::find(precisions(), name, &Precision::name);
  expects(found != precisions().end(), "a precision is one of the table");
  return *found;
}

}  // namespace stratagem::cost

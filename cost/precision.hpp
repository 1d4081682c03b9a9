// Precisions of training: which type weights, activations, gradients and matrix products have.
#pragma once

#include <string>
#include <vector>

#include "model/tensor.hpp"

namespace stratagem::cost {

/// How a run keeps numbers. Statistics of norms and of the loss are in fp32 in all of them; scaling
/// the loss and looking for overflows is a fact of the stack.
struct Precision {
  std::string name;
  std::string summary;
  model::DataType values = model::DataType::fp16;  ///< of weights and activations
  /// Of weights' gradients: as they are held between micro-batches and reduced. They are computed
  /// in the type of the values.
  model::DataType gradients = model::DataType::fp16;
  model::DataType products = model::DataType::fp16;  ///< of the operands of linear layers
  bool master_copy = true;  ///< an fp32 copy of the weights, which the optimizer steps
};

/// All of them, in the order in which --help lists them. Sources: Micikevicius et al., Mixed
/// Precision Training, ICLR 2018, section 3 (fp16); Kalamkar et al., arXiv:1905.12322 (bf16);
/// Micikevicius et al., arXiv:2209.05433 (fp8).
const std::vector<Precision>& precisions();

/// The entry of that name; expects that there is one.
const Precision& precision_named(const std::string& name);

}  // namespace stratagem::cost

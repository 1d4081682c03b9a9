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
  /// Of products in another type: does a cast first read the whole tensor for its largest value,
  /// which the tensor's scale follows from? Otherwise scales are of earlier tensors, or of blocks.
  bool largest_first = false;
  /// Likewise: copies of an operand, one for each direction in which products read it.
  int copies = 2;
};

/// Tensor cores of GPUs before compute capability 10.0 (ten times CUDA's number here), and of 12.x,
/// multiply fp8 along rows of both operands only, so each operand has a transposed copy, too. Newer
/// ones take either order. Where blocks of rows share a scale, there are two copies on all GPUs,
/// since blocks of columns have other scales. Source: Transformer Engine d0067d0d,
/// common/transformer_engine.cpp, nvte_is_non_tn_fp8_gemm_supported.
void choose_copies(Precision&, int compute_capability);

/// Is the precision `base`, or the same with gradients in fp32 ("fp8", "fp8-fp32-gradients")?
bool is_variant_of(const Precision&, const std::string& base);

/// All of them, in the order in which --help lists them. Sources: Micikevicius et al., Mixed
/// Precision Training, ICLR 2018, section 3 (fp16); Kalamkar et al., arXiv:1905.12322 (bf16);
/// Micikevicius et al., arXiv:2209.05433 (fp8); DeepSeek-V3, arXiv:2412.19437, section 3.3
/// (fp8-blocks); OCP Microscaling Formats 1.0 (mxfp8); arXiv:2509.25149 (nvfp4); which tensors a
/// scale is taken of: Transformer Engine d0067d0d, common/recipe/__init__.py.
const std::vector<Precision>& precisions();

/// The entry of that name; expects that there is one.
const Precision& precision_named(const std::string& name);

}  // namespace stratagem::cost

// Linear layers that multiply in another type than weights and activations have: what is cast for
// them.
#pragma once

#include <set>

#include "cost/kernel.hpp"
#include "cost/precision.hpp"
#include "model/graph.hpp"

namespace stratagem::lowering {

/// Does a precision have operands cast at all? Tensor cores take fp32 operands as TF32 by
/// themselves.
bool needs_casts(const cost::Precision& precision);

/// Is an operator a product of a linear layer, or one of its gradients, whose operands are cast to
/// `precision.products`? Products of activations alone stay in the type of the values, and so does
/// the segment of the loss, as Transformer Engine's users have it: logits want precision.
bool casts_operands(const model::Graph& graph, const model::Operator& op,
                    const cost::Precision& precision);

/// The parameters of which devices have copies for such products.
std::set<model::TensorId> cast_parameters(const model::Graph& graph,
                                          const cost::Precision& precision);

/// Has an operator an operand cast before it runs? Weights are cast once an iteration, and
/// activations before the forward product, whose cast serves the gradient of the weights.
bool casts_operand(const model::Graph& graph, const model::Operator& op, model::TensorId operand,
                   const cost::Precision& precision);

/// A product's kernel, on operands that are cast.
cost::Kernel on_cast_operands(cost::Kernel kernel, const model::Graph& graph,
                              const model::Operator& op, const cost::Precision& precision);

/// Bytes of the copies of something of so many bytes, `type` before: two, since products read rows
/// of both operands and each is an operand of two products. Transformer Engine keeps weights and
/// their transposes from one first micro-batch to the next (pytorch/module/base.py, where weights
/// are cached).
Bytes copies_of(Bytes bytes, model::DataType type, const cost::Precision& precision);

/// Reads once and writes both copies.
cost::Kernel cast_kernel(Bytes bytes, model::DataType type, const cost::Precision& precision);

}  // namespace stratagem::lowering

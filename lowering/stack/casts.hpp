// What products in another type than weights and activations have need besides casts of
// activations, which are operators of the model (model/cast_products.hpp): copies of weights.
#pragma once

#include "cost/kernel.hpp"
#include "cost/precision.hpp"
#include "model/graph.hpp"

namespace stratagem::lowering {

/// Does a precision have operands cast at all?
bool needs_casts(const cost::Precision& precision);

/// A product's kernel as the precision has it: on tensor cores in TF32, and with copies of the
/// parameters that it reads.
cost::Kernel on_operands_of(cost::Kernel kernel, const model::Graph& graph,
                            const model::Operator& op, const cost::Precision& precision);

/// Bytes of the copies of a weight of so many bytes, `type` before: two, since products read rows
/// of both operands and each weight is an operand of two products. Transformer Engine keeps weights
/// and their transposes from one first micro-batch to the next (pytorch/module/base.py, where
/// weights are cached).
Bytes copies_of(Bytes bytes, model::DataType type, const cost::Precision& precision);

/// Reads once and writes both copies.
cost::Kernel cast_kernel(Bytes bytes, model::DataType type, const cost::Precision& precision);

}  // namespace stratagem::lowering

// What products in another type than weights and activations have need besides casts of
// activations, which are operators of the model (model/cast_products.hpp): copies of weights.
#pragma once

#include <cstdint>
#include <vector>

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

/// Adds to a cast's kernel, which reads once and writes one copy of a result of the given local
/// shape, what the precision's scales need: other copies, and reading for the largest value first.
/// Throws InputError if the shape is not one that the format can have.
void complete_cast(cost::Kernel& kernel, const model::Graph& graph, const model::Operator& op,
                   const std::vector<std::int64_t>& shape, const cost::Precision& precision);

/// Bytes of the copy of a parameter that a pass of a segment reads, over the parameter's own: 1 if
/// it reads the parameter itself.
double read_scale(const model::Graph& graph, model::TensorId parameter, int segment);

/// Bytes of the copies of a weight of so many bytes, `type` before. Transformer Engine keeps them
/// from one first micro-batch to the next (pytorch/module/base.py, where weights are cached).
Bytes copies_of(Bytes bytes, model::DataType type, const cost::Precision& precision);

/// Reads a weight, and writes its copies.
cost::Kernel cast_kernel(Bytes bytes, model::DataType type, const cost::Precision& precision);

}  // namespace stratagem::lowering

// Rules of kernels: what a part of an operator, and a step of a parameter, launches and moves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/kernel.hpp"
#include "cost/optimizer.hpp"
#include "cost/stack.hpp"
#include "model/graph.hpp"

namespace stratagem::lowering {

using Shapes = std::vector<std::vector<std::int64_t>>;

/// The kernel of an operator whose operands have the given local shapes. A contraction becomes a
/// GEMM: batch are the dimensions of both operands and the result, k those of both operands alone.
/// Other kinds move their operands through memory once, and as often again as the stack says;
/// lookups move only the rows they pick. The type of a GEMM is that of its rates: the operands'
/// own, or fp32 for batches that the stack says no tensor cores compute.
cost::Kernel kernel_of(const model::Graph& graph, const model::Operator& op, const Shapes& inputs,
                       const Shapes& outputs, const cost::Stack& stack);

/// The stack's rule for a kind of operator; one launch and nothing besides where it has none.
cost::OperatorKernels kernels_of(const cost::Stack& stack, const std::string& name);
/// The rule for an operator: one about its name or about those on tensors of experts, if it is one
/// of them, else the rule for its kind.
cost::OperatorKernels kernels_of(const cost::Stack& stack, const model::Graph& graph,
                                 const model::Operator& op);

/// Adds to an operator's kernel the work of putting its gradient, of so many elements, where it is
/// held: the framework adds it to what is there already (`adds`), or copies it there. If the
/// gradient is held in another type, that is a kernel of its own.
void hold_gradient(cost::Kernel& kernel, const model::Graph& graph, const model::Operator& op,
                   double elements, bool adds, const cost::Stack& stack);

/// The type in which an operator computes an output. Gradients of weights are computed in the type
/// of the forward operator's output, in whatever type they are held.
model::DataType computed_type(const model::Graph& graph, const model::Operator& op,
                              model::TensorId output);

/// Does it compute a gradient that is held in another type?
bool held_in_another_type(const model::Graph& graph, const model::Operator& op);

/// One optimizer step of one tensor.
cost::Kernel optimizer_kernel(const cost::Stepped& tensor, const cost::Training& training,
                              const cost::Stack& stack);

/// The same on the processors of the server, where what the framework keeps besides is, too, and is
/// read and written.
cost::Kernel host_optimizer_kernel(const cost::Stepped& tensor, const cost::Training& training,
                                   const cost::Stack& stack);

}  // namespace stratagem::lowering

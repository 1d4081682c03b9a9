// What a part of an operator asks of a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/kernel.hpp"
#include "cost/optimizer.hpp"
#include "cost/stack.hpp"
#include "model/graph.hpp"
#include "strategies/program.hpp"

namespace stratagem::strategies {

using Shapes = std::vector<std::vector<std::int64_t>>;

/// The kernel of an operator whose operands have the given local shapes. A contraction becomes a
/// GEMM: batch are the dimensions of both operands and the result, k those of both operands alone.
/// Other kinds move their operands through memory once, and as often again as the stack says;
/// lookups move only the rows they pick.
cost::Kernel kernel_of(const model::Graph& graph, const model::Operator& op, const Shapes& inputs,
                       const Shapes& outputs, const cost::Stack& stack);

/// An operator's kind as stacks name it: "gelu", "gelu.B", "contraction.W".
std::string stack_name(const model::Operator& op);

/// What the stack says of an operator's kind and pass.
cost::OperatorFacts facts_of(const model::Operator& op, const cost::Stack& stack);

/// What it takes besides an operator's kernel until the gradient that it computes, of so many
/// elements, is where that gradient is held: the framework adds it to what is there already (`adds`),
/// or puts it there. One that is held in another type goes there in a kernel of its own.
void hold_gradient(cost::Kernel& kernel, const model::Graph& graph, const model::Operator& op,
                   double elements, bool adds, const cost::Stack& stack);

/// The type in which an operator computes an output: of gradients of weights that of what it reads,
/// however they are held.
model::DataType computed_type(const model::Graph& graph, const model::Operator& op,
                              model::TensorId output);

/// Is what it computes a gradient that is held in another type?
bool held_in_another_type(const model::Graph& graph, const model::Operator& op);

/// One optimizer step of one tensor.
cost::Kernel optimizer_kernel(const cost::Stepped& tensor, const cost::Training& training,
                              const cost::Stack& stack);

/// The same on the processors of the server, where what the framework keeps besides is, too, and is
/// read and written.
cost::Kernel host_optimizer_kernel(const cost::Stepped& tensor, const cost::Training& training,
                                   const cost::Stack& stack);

/// The framework saves or restores its random generator's state, and waits for every copy.
Task random_state_copies(int copies, const cost::Stack& stack);

}  // namespace stratagem::strategies

// What a part of an operator asks of a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/kernel.hpp"
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

/// One optimizer step on `parameters` elements of one tensor.
cost::Kernel optimizer_kernel(double parameters, const cost::Stack& stack);

/// The same on the processors of the server: reads and writes every state, reads a gradient and writes
/// a parameter of `type`.
cost::Kernel host_optimizer_kernel(double parameters, model::DataType type,
                                   const cost::Stack& stack);

/// The framework saves or restores its random generator's state, and waits for every copy.
Task random_state_copies(int copies, const cost::Stack& stack);

}  // namespace stratagem::strategies

// How much memory an iteration of a program takes, by the births and deaths in it.
#pragma once

#include "base/quantity.hpp"
#include "model/graph.hpp"
#include "strategies/program.hpp"

namespace stratagem::execute {

struct MemoryNeed {
  Bytes iteration;  ///< the most that lives at once
  Bytes gradients;  ///< of what the device steps: what a check keeps of an iteration
};

/// Of one device: what it has of parameters and gradients, what the optimizer keeps of those that
/// it steps, and the most that lives at once beside them, all in elements of `element` bytes as
/// the interpreter holds them; what has been sent lives until the iteration's end. Parts of values
/// that are copied for one operator, buffers of libraries and what messages are packed into are
/// left out, so it is a lower bound. Expects a program that is not refused.
MemoryNeed memory_need(const strategies::Program& program, const model::Graph& graph, int device,
                       std::size_t element);

}  // namespace stratagem::execute

// How much memory an iteration of a program takes.
#pragma once

#include "base/quantity.hpp"
#include "execute/buffer_packing.hpp"
#include "model/graph.hpp"
#include "program/program.hpp"

namespace stratagem::execute {

struct MemoryNeed {
  Bytes iteration;  ///< that buffers and states take
  Bytes gradients;  ///< of what the device steps: what a check keeps of an iteration
};

/// Of one device, in elements of such sizes: the arena in which the interpreter has buffers, and
/// what of the optimizer's states does not fit there, all of them where the program has those on
/// the host. Parts of values that are copied for one operator, messages on their way and what they
/// are packed into, and buffers of libraries are left out, so it is a lower bound. Expects a
/// program that is not refused.
MemoryNeed memory_need(const program::Program& program, const model::Graph& graph, int device,
                       const ElementSizes& sizes);

}  // namespace stratagem::execute

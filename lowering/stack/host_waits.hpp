// What the host waits for before it launches more, as the stack has it.
#pragma once

#include "cost/stack.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// Writes Call::host_waits. Before: every sequence has its calls, with what they wait for on the
/// device, and none of them has such waits. After, the host waits
///   - before a gather of parameters: for what the plan orders before it, such as the end of the
///     layer whose room it takes. The order is there to bound memory, and frameworks enforce it on
///     the host (FSDP's limit_all_gathers; the fetch events of DeepSpeed's
///     partitioned_param_coordinator.py)
///   - before the first computation of a forward cell: for the computations so far, and what the
///     cell has received, since the sizes of a micro-batch are copied from the device before it
///     begins (Megatron-LM, mpu/data.py, broadcast_data). Cells that take turns begin as one
///   - before that of every other cell, too, if the stack reads what a stage receives, but for the
///     last stage's backward cells, which receive nothing
///   - before that of every cell: for all streams of the device, if the stack waits for each pass,
///     or for what stages exchange (Megatron-LM, p2p_communication.py: torch.cuda.synchronize)
///   - before each task: for the same, if the stack waits for each launch.
/// If stages on different grids share a device, only the last is written, on all devices. The
/// frameworks that the others were read in have no such stages, and hosts would wait for each other
/// for ever.
void add_host_waits(program::Program& program, const cost::Stack& stack);

}  // namespace stratagem::lowering

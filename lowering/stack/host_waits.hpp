// What the host waits for before it launches more, as the stack has it.
#pragma once

#include "cost/stack.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// Writes Call::host_waits, and where the stack says that passes take work of their own,
/// Call::begins_pass. Before: every sequence has its calls, not yet in loops, with what they
/// wait for on the device, and none of them has such waits. After, the host waits
///   - before a gather of parameters: for what the plan orders before it, such as the end of the
///     layer whose room it takes. The order is there to bound memory, and frameworks enforce it on
///     the host (FSDP's limit_all_gathers; the fetch events of DeepSpeed's
///     partitioned_param_coordinator.py)
///   - before the first computation of a micro-batch's first forward cell on a stage, if the stack
///     copies the sizes of a micro-batch from the device (Megatron-LM, mpu/data.py,
///     broadcast_data): for the computations so far, and the messages that its call reads
///   - before the first computation of a cell that reads what another device sent, if the stack
///     reads it on the host (DeepSpeed): for the computations so far and the receive. Where tensor
///     ranks sent shares, before the gather of them
///   - before the same, if the stack waits for what stages exchange (Megatron-LM,
///     p2p_communication.py: torch.cuda.synchronize): for all streams of the device and the
///     receive. On devices that exchange anything, a cell that receives nothing waits before its
///     first computation; of cells that take turns, the first one. A stack may say that devices
///     with several stages do not wait, since their exchanges run beside computations
///   - before the first computation of every cell, if the stack waits for each pass: for all
///     streams. Cells that take turns are one pass
///   - before each task, if the stack waits for each launch: for all streams.
/// No host waits for what others launch at a later place in the order of all cells: none for a
/// send, and no computation for one that may end later (RedistributionBlocks).
void add_host_waits(program::Program& program, const cost::Stack& stack);

/// Checks a program (program::check). If its devices wait for each other for ever only since their
/// hosts wait, the InputError says why they do. That happens where stages of several grids share
/// devices and weights are gathered ahead: these devices may launch gathers in different orders.
void check_with_hosts(const program::Program& program, const cost::Stack& stack);

}  // namespace stratagem::lowering

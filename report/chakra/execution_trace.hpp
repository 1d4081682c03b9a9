// Execution traces of MLCommons' Chakra, which ASTRA-sim and other simulators read.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "program/program.hpp"
#include "sim/timeline.hpp"

namespace stratagem::report {

/// One iteration of each device: metadata, then a node for each task, each message behind its
/// length, as Chakra's feeder reads a file NAME.RANK.et.
///   kernels             COMP_NODE: num_ops (FLOPs), tensor_size (bytes of memory traffic)
///   collectives         COMM_COLL_NODE: comm_type, comm_size (bytes that a rank puts in), pg_name
///                       (a group's number)
///   sends               COMM_SEND_NODE and COMM_RECV_NODE: comm_src, comm_dst, comm_tag
///   copies to the host  MEM_STORE_NODE, and MEM_LOAD_NODE of those back
/// Nodes depend on those before them on their stream, and on what the program has them wait for.
/// Durations and begins are the predicted ones, in whole microseconds; `duration_ps` has them in
/// full. Leaves out the host's launch times and waits, and all buffers. Expects a timeline with all
/// turns (Repeats::simulated).
std::vector<std::string> execution_traces(const program::Program& program,
                                          const sim::Timeline& timeline);

/// The ranks of every group by its number, as ASTRA-sim's --comm-group-configuration:
/// {"1": [0, 1], ...}.
Json communicator_groups(const program::Program& program);

}  // namespace stratagem::report

// The text of a program: all that it says, in one form, whatever it numbers how.
#pragma once

#include <cstdint>
#include <string>

#include "model/graph.hpp"
#include "program/program.hpp"

namespace stratagem::program {

/// How the calls of a sequence are written.
enum class CallText : std::uint8_t {
  spelled_out,  ///< every call by itself, whatever loops there are
  in_loops      ///< as they are stored
};

/// Every fact of a program that an interpreter can see: each block once, with its buffers and
/// tasks, then what the devices of each sequence run.
///
/// Programs that differ only in how they number things, and spelled out in what they store as
/// loops, have the same text. Blocks, buffers, calls and communicators are named for what they are:
/// a block for its segment and pass, a communicator for its ranks, a sequence for the ranks that
/// run it; equal names are told apart by a number in the order of first use. What has no order is
/// sorted: buffers, waits, what a task reads, writes and frees, sequences. What has one keeps it:
/// calls of a sequence and tasks of a block, which the host launches in this order; buffers that a
/// task allocates and residents of one category, which an allocator takes in this order; ranks of a
/// communicator. In a loop "m" is the micro-batch of its first call, and a wait says how many calls
/// before what it waits for is.
///
/// Names of segments, tensors and operators are those of `graph`, the plan's; what it lacks has a
/// number. Linear in the calls; in loops, in those that are stored.
std::string to_text(const Program& program, const model::Graph& graph = {},
                    CallText calls = CallText::spelled_out);

}  // namespace stratagem::program

// Runs a program in virtual time.
#pragma once

#include <cstdint>
#include <optional>

#include "program/program.hpp"
#include "program/shorter.hpp"
#include "sim/folding/folding.hpp"
#include "sim/price.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// Is what repeats left out where it need not be simulated, or is all simulated? Both give the same
/// metrics. Rounds are left out only of programs without a lag.
enum class Repeats : std::uint8_t { left_out, simulated };

/// Plays `iterations` iterations. Where repeats are left out, it ends as soon as a round is known
/// to go on as the one before (repeated_rounds.hpp). Then this round and the next have its times, a
/// period later, and more are not played.
///
/// Every actor has a host that launches its tasks in program order, each launch costing its price;
/// the host goes on without waiting, except where a task synchronises. A task begins when it is
/// launched, the task before it in its queue (timeline.hpp) has ended, and all it waits for has
/// ended; it ends after its device time, and not before its last kernel is launched and done. A
/// collective begins when its last rank has arrived (the k-th of a communicator in the program of
/// one rank meets the k-th of every other), takes its latency, then flows until its volume is
/// through, at rates shared max-min fairly with all flows there are at the time.
///
/// Communication slows kernels down, by the folding's `compute_slowdown` s. While its GPU takes
/// part in at least one collective or send (from the arrival of the last rank to the end, latency
/// included) a kernel progresses at the rate 1 - s, otherwise at the rate 1. That applies to its
/// device time, and to its last kernel from its launch on (slowed_kernels.hpp). It does not apply
/// to launches, nor to the time that the device idles between kernels (Price::idle). Copies to and
/// from the host slow nothing down, and work of the host is not slowed down. With a serial folding,
/// tasks on streams that do not transfer run one after another, in the order of the program. A GPU
/// that waits for other ranks is not slowed down, though NCCL's kernel already runs there.
///
/// Tasks that cannot be slowed down are computed ahead of the clock. Flows, and kernels beside
/// which there may be flows, are events, ordered by instant, then by sequence number. That is safe.
/// What an actor does ahead of an unfinished collective cannot depend on it. And if it has arrived
/// at no unfinished collective, none slows it down before it arrives at the next. Expects that no
/// rank waits for ever (lowering refuses plans that deadlock).
Timeline run(const program::Program& program, const Folding& folding, const Prices& prices,
             int iterations, Repeats repeats = Repeats::simulated);

/// Plays a shorter program instead. The timeline stands for the whole program, and leaves out the
/// turns that `shorter` lacks. That needs a repetition in every iteration, or the result is empty:
/// at two turns, with all ranks in their long loops, the state of the simulation
/// (relative_state.hpp) is the same. The turns between them are a period, and the turns that are
/// lacking are whole periods.
std::optional<Timeline> run_shorter(const program::Program& program, program::Shorter shorter,
                                    const Folding& folding, const Prices& prices, int iterations,
                                    Repeats rounds = Repeats::left_out);

}  // namespace stratagem::sim

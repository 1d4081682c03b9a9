// Checks that a program can run, before it is simulated or executed.
#pragma once

#include "program/program.hpp"

namespace stratagem::program {

/// Throws InputError unless
///   - every index names something, and every wait is for an earlier task;
///   - all devices of a communicator know it, and post the same collectives in the same order of an
///     iteration (same kind, payload and combine; for transfers also the same tensor and
///     micro-batch);
///   - nothing deadlocks: there is no cycle of queues, waits and collectives. Each queue runs in
///     order: a stream (except for transfers), and the collectives of a communicator on all
///     streams, since NCCL runs them one after another. Collectives, sends included, begin when all
///     their ranks have arrived. The error prints one cycle;
///   - cells begin in the order in which a communicator's messages for them arrive;
///   - buffers are allocated once, written before they are read, live when used, and freed in the
///     end.
///
/// The deadlock check first treats all devices of a sequence as one and looks at calls: without a
/// cycle there, there is none at all. Only if it finds a cycle does it look at every task on every
/// device. So the cost is linear in the calls of the sequences and the tasks of the blocks. If
/// iterations overlap, it looks at twice as many as are ever under way.
void check(const Program& program);

}  // namespace stratagem::program

// Can a program run? Asked before either interpreter plays it.
#pragma once

#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Throws InputError unless
///   every wait is for an earlier task, and every index names something there is;
///   all devices of a communicator post the same collectives (kind, payload, combine; of transfers
///   also tensor and micro-batch) in the same order of an iteration, and each of its devices knows
///   it;
///   no devices wait for each other for ever: there is no cycle over the tasks of each queue in
///   order (a stream, but for transfers; the collectives of a communicator, on whatever streams, as
///   NCCL runs them), waits, and collectives, sends among them, which
///   begin when all their ranks have come (the message prints one cycle);
///   cells begin in the order in which messages of a communicator come for them;
///   buffers are born once, written before they are read, alive when used, and dead in the end.
///
/// Asks of calls first, with all devices of a sequence as one: what has no cycle there has none at
/// all. Only a program for which that does not settle it is looked at task by task on every
/// device. So the cost is linear in the calls of the sequences and the tasks of the blocks. Where
/// iterations overlap, twice as many are looked at as are ever under way.
void check(const Program& program);

}  // namespace stratagem::strategies

// Bounds of a run's time and memory that are known before its program is made.
#pragma once

#include "base/quantity.hpp"
#include "program/program.hpp"
#include "sim/price.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// No run takes less than its bounds, as simulate() predicts it.
struct Bounds {
  Seconds iteration_time;
  Bytes memory;  ///< of the fullest device
};

/// Expects a run that is not refused.
///   iteration_time  the longest way through the cells, as data connects them and each device
///                   orders them, from a device's first cell to its first cell in the next
///                   iteration. On it are computations, and collectives that they wait for, as if
///                   these had all links to themselves. What comes to a cell delays it from the
///                   last task on that is the first to read something; what leaves it does so when
///                   the first of its results is complete. Left out are messages, gathers and
///                   reductions beside the cells, steps, launches, and what computations lose
///                   beside communication: in a simulation these only add. 0 where iterations
///                   overlap.
///   memory          what lives on a device all the time, with the context of its driver, and what
///                   its computations hold as they follow each other. Left out are messages,
///                   collectives, whatever may wait elsewhere, communicators, and what an allocator
///                   holds beyond live buffers.
/// Throws InputError, as simulate() does, where the plan is refused before its tasks are in order.
Bounds bounds(const Run& run);

/// The same of a run whose program is known: what its tasks take on the busiest queue of a device,
/// one after another, collectives with all links to themselves. 0 where iterations overlap.
/// It bounds the mean iteration, as sim/busiest_link.hpp says.
Seconds busiest_queue(const Run& run, const program::Program& program, const sim::Prices& prices);

/// How far the computations of a block raise memory by buffers that others of them free. What stays
/// behind is in lowering::OutlinedCell::leaves.
Bytes rise_of(const program::Block& block);

}  // namespace stratagem::study

// Timelines as Chrome trace events, for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "program/program.hpp"
#include "sim/host_memory.hpp"
#include "sim/timeline.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {

/// What a trace is of: so that another one can be held to it.
struct TraceOf {
  std::string run;
  std::string provenance = "predicted";  ///< or measured, with where and when
  Seconds iteration = {};
  std::vector<Bytes> peaks = {};  ///< of live buffers, by actor; none: not known
};

/// Of a prediction.
TraceOf trace_of(const std::string& run, const study::Simulated& simulated);

/// One process per actor with a row per stream. Slices are the tasks of the round in which the
/// measured iteration ends, with cell, bytes or FLOPs as arguments. A counter by category is the
/// memory of the first iteration. Times in microseconds: of tasks from the first begin of any
/// actor's, of memory from the begin of the simulation. Servers of `hosts` come behind, a process
/// with such a counter each. "otherData" has what the trace is of, and by device the process that
/// stands for it.
std::string chrome_trace(const program::Program& program, const sim::Timeline& timeline,
                         const TraceOf& of, const std::vector<sim::HostMemory>& hosts = {});

}  // namespace stratagem::report

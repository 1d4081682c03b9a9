// Timelines as Chrome trace events, for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "program/program.hpp"
#include "report/traces/link_rates.hpp"
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

/// What a trace shows beside tasks and memory of GPUs, and which devices.
struct TraceContents {
  std::vector<sim::HostMemory> hosts = {};  ///< steps until the end of measured_round
  std::vector<LinkRates> links = {};        ///< by actor; none: not known
  std::vector<int> devices = {};            ///< each once, whose actors are shown; none: all are
};

/// By actor: does a trace of these devices show it?
std::vector<bool> shown_actors(const sim::Timeline& timeline, const std::vector<int>& devices);

/// One process per actor with a row per stream. Slices are the tasks of the round in which the
/// measured iteration ends, with cell, bytes or FLOPs as arguments, and arrows lead from what
/// sends a message to what receives it. The counter "memory" has the bytes of each category,
/// and of all; "links" has rates in GB/s. A counter names only what changes. Servers come
/// behind, a process with a counter of memory each, then a process "run" with the slice
/// "iteration": from the end of the iteration before to that of the measured one. Times in
/// microseconds from its begin, or from that of the first task, if that is sooner. "otherData"
/// has what the trace is of, and by device the process that stands for it, -1 if that is not
/// shown.
std::string chrome_trace(const program::Program& program, const sim::Timeline& timeline,
                         const TraceOf& of, const TraceContents& contents = {});

}  // namespace stratagem::report

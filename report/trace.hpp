// Timelines as Chrome trace events, for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "sim/host_memory.hpp"
#include "sim/timeline.hpp"
#include "strategies/program.hpp"

namespace stratagem::report {

/// One process per actor with a row per stream, tasks of the last iteration as slices (with cell,
/// bytes or FLOPs as arguments), and the memory of the first iteration as a counter by category.
/// Times in microseconds from the beginning of each.
/// Servers of `hosts` come behind, a process with such a counter each.
std::string chrome_trace(const strategies::Program& program, const sim::Timeline& timeline,
                         const std::string& title, const std::vector<sim::HostMemory>& hosts = {});

}  // namespace stratagem::report

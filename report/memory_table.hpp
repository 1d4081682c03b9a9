// What fills the memory of devices.
#pragma once

#include <string>
#include <vector>

#include "study/results.hpp"

namespace stratagem::report {

/// What is allocated at a device's peak, largest first, and what its allocator holds beside that:
/// "optimizer states 133 GB, parameters 16.6 GB; free within the allocator 2.1 GB".
std::string breakdown(const sim::DeviceMemory& device);
/// The same of any peak, without a workspace.
std::string breakdown(const sim::MemoryPeak& peak);

/// For every run its devices, those that are alike once: the three figures, what stands beside the
/// allocator, and at which task the peak is and of what; then servers, where they hold
/// anything. Lines of at most 120 columns.
std::string memory_table(const std::vector<study::Result>& results);

}  // namespace stratagem::report

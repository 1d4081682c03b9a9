// CPU time that others on a shared machine take from this process.
#pragma once

#include <functional>
#include <istream>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::kernels {

/// How long a hypervisor gave each processor that this thread may run on to others while it had
/// work, since the system came up: "steal" in Linux's /proc/stat, which counts clock ticks of 10
/// ms. Empty where there is no such file; 0 on hypervisors that do not tell.
std::vector<Seconds> stolen_times();

/// The same of a text in the form of /proc/stat, for processors whose numbers are `mine`, at so
/// many ticks a second.
std::vector<Seconds> stolen_times(std::istream& stat, const std::function<bool(int)>& mine,
                                  double ticks);

}  // namespace stratagem::kernels

// What others on a shared machine take from this process's processors.
#pragma once

#include <functional>
#include <istream>

#include "base/quantity.hpp"

namespace stratagem::kernels {

/// How long a hypervisor gave processors that this process may run on to others while they had work,
/// since the system came up, all of them together: "steal" in Linux's /proc/stat, which counts clock
/// ticks of 10 ms. 0 where there is no such file, and on hypervisors that do not tell.
Seconds stolen_time();

/// The same of a text in the form of /proc/stat, for processors whose numbers are `mine`, at so many
/// ticks a second.
Seconds stolen_time(std::istream& stat, const std::function<bool(int)>& mine, double ticks);

}  // namespace stratagem::kernels

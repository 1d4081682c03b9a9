// What the runs of a scenario ask of devices, for whoever wants to measure it.
#pragma once

#include <string>
#include <vector>

#include "cost/kernel.hpp"

namespace stratagem::search {

/// The kernels of all runs of a scenario, of the sizes that their ranks run them in, each once and
/// in ascending order. Profiles that runs name need not be there: what is asked does not depend on
/// what it takes. Runs that are refused have none. Throws InputError for a scenario that cannot be
/// read, and where all of its runs are refused.
std::vector<cost::Kernel> kernels_of_scenario(const std::string& file);

}  // namespace stratagem::search

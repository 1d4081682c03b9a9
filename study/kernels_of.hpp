// The kernels that the runs of a scenario need, for measuring them.
#pragma once

#include <string>
#include <vector>

#include "cost/kernel.hpp"

namespace stratagem::study {

/// The kernels of all runs of a scenario, in the sizes in which the ranks run them, each once and
/// in ascending order. The profiles that runs name need not exist: kernels do not depend on how
/// long they take. Refused runs contribute none. Throws InputError for a scenario that cannot be
/// read, and if all of its runs are refused.
std::vector<cost::Kernel> kernels_of_scenario(const std::string& file);

}  // namespace stratagem::study

// A run as it is beside what was found for it.
#pragma once

#include <string>

#include "study/scenario.hpp"

namespace stratagem::report {

/// Both simulated, with the run's own `what` ("order") and with the one that was found: time, where
/// it goes, and memory; and why one of them does not run.
std::string own_and_found(const std::string& what, const study::Outcome& own,
                          const study::Outcome& found);

}  // namespace stratagem::report

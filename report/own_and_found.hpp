// Prints a run's own plan and the one that a search found, side by side.
#pragma once

#include <string>

#include "study/simulate.hpp"

namespace stratagem::report {

/// Both simulated, with the run's own `what` ("order") and with the one that was found: time, where
/// it goes, and memory; and why one of them does not run.
std::string own_and_found(const std::string& what, const study::Outcome& own,
                          const study::Outcome& found);

}  // namespace stratagem::report

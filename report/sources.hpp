// What predictions rest on: where constants come from, and what is beyond measured sizes.
#pragma once

#include <string>
#include <vector>

#include "study/results.hpp"

namespace stratagem::report {

/// The weakest constants, and the largest shares beyond what was measured. Expects a run.
std::string sources_line(const std::vector<study::Result>& results);

/// Also their names, scalars of stacks that were fitted to whole runs, and measured networks.
std::string sources_in_full(const std::vector<study::Result>& results);

/// The run that loses most to rows of products which are not aligned, if that is 1 % and more.
std::string unaligned_rows(const std::vector<study::Result>& results);

}  // namespace stratagem::report

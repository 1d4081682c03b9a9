// What a scenario asks where nothing was measured: how fast, what takes the time, does it fit.
#pragma once

#include <string>
#include <vector>

#include "study/results.hpp"

namespace stratagem::report {

/// The line of headings, and one for each run, which has this name there: time, tokens, MFU,
/// communication, idling and memory; efficiency where runs have a baseline, cost where GPUs have a
/// price. What follows from other columns is left out of lines that would be longer than 120.
std::vector<std::string> answer_rows(const std::vector<study::Result>& results,
                                     const std::vector<std::string>& names);

/// What the columns mean.
std::string answer_legend(const std::vector<study::Result>& results);

/// What an iteration of the fastest run that fits goes to; "" if none does.
std::string where_time_goes(const std::vector<study::Result>& results);

}  // namespace stratagem::report

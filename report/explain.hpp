// The plan of a run in words, for people who ask what a strategy does.
#pragma once

#include <string>

#include "strategies/plan/plan.hpp"
#include "study/run.hpp"

namespace stratagem::report {

/// What the run is, its stages on their devices, and its primitives as a plan file has them.
std::string explain(const study::Run& run, const strategies::Plan& plan);

}  // namespace stratagem::report

// The plan of a run, whether a strategy composes it or a file has it.
#pragma once

#include "base/input_error.hpp"
#include "search/scenario.hpp"
#include "strategies/plan.hpp"

namespace stratagem::search {

/// `run` must outlive the plan. Throws InputError, for a refused run the one that it was refused for.
strategies::Plan plan_of(const Run& run);

/// An error of a plan, which does not know the file that it comes from, at its place in that file;
/// one that names a file is there already.
InputError located(const Run& run, const InputError& error);

}  // namespace stratagem::search

// The plan of a run, whether a strategy composes it or a file has it.
#pragma once

#include "base/input_error.hpp"
#include "strategies/plan/plan.hpp"
#include "study/scenario.hpp"

namespace stratagem::study {

/// `run` must outlive the plan. Throws InputError; for a refused run, the error that it was refused
/// for.
strategies::Plan plan_of(const Run& run);

/// Adds the file to the error of a plan, which does not know its file. An error that names a file
/// already stays as it is.
InputError located(const Run& run, const InputError& error);

}  // namespace stratagem::study

// The plan and the program of a run, whether a strategy composes it or a file has it.
#pragma once

#include <vector>

#include "base/input_error.hpp"
#include "program/program.hpp"
#include "strategies/plan/plan.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// `run` must outlive the plan. Throws InputError; for a refused run, the error that it was refused
/// for.
strategies::Plan plan_of(const Run& run);

/// What a run's plan becomes. Throws InputError for a plan that cannot be lowered, or for which the
/// run's cluster or profile lacks something.
program::Program program_of(const Run& run, const strategies::Plan& plan);

/// How many ranks the groups have that the stack communicates in beside the plan's collectives. A
/// plan file has no degrees: of it only the group of all ranks is known.
std::vector<int> groups_beside(const Run& run);

/// Adds the file to the error of a plan, which does not know its file, or the option of the command
/// line that it is of.
InputError located(const Run& run, const InputError& error);

/// The error of a key that the command line set, or of one below it, names the option in place of
/// the file. The error of the object that has the key names both.
InputError named(const Origin& origin, const InputError& error);

}  // namespace stratagem::study

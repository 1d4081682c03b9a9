// Which devices a plan uses, before anything is lowered.
#pragma once

#include <vector>

#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

/// The device of every part of a copy of an operator, ascending; one twice if two parts share it.
std::vector<int> devices_of(const Plan::Placement& placement, int copy);
/// The devices on which any operator of a copy of a stage stands, ascending, each once.
std::vector<int> devices_of(const Plan& plan, int stage, int copy);
/// How many devices have an operator.
int device_count(const Plan& plan);

}  // namespace stratagem::strategies

// A plan as its primitives: as a plan file, and in words.
#pragma once

#include <string>

#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

/// What read_plan reads as a plan that lowers to the same program: JSON, a line for every stage and
/// primitive.
std::string file_text(const Plan& plan);

/// The same in columns, long chains abbreviated: a line for every primitive.
std::string to_text(const Plan& plan);

/// "embedding, layers.[0-3]": the segments of a stage, as a selector.
std::string segments_of(const Plan& plan, int stage);

}  // namespace stratagem::strategies

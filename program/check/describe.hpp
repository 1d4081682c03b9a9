// Describes tasks for error messages.
#pragma once

#include <string>

#include "program/program.hpp"

namespace stratagem::program {

/// "attention.out all-reduce of F layers.3".
std::string describe(const Block& block, const Task& task);
/// "attention.out all-reduce of F layers.3 in F(stage 1, micro-batch 0)".
std::string describe(const Program& program, const Sequence& sequence, const TaskOfCall& place);

const Task& task_at(const Program& program, const Sequence& sequence, const TaskOfCall& place);

}  // namespace stratagem::program

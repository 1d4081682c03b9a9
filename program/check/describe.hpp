// Describes tasks for error messages.
#pragma once

#include <string>

#include "program/program.hpp"

namespace stratagem::program {

/// A task of a sequence.
struct Place {
  int call = 0;
  int task = 0;
};

/// "attention.out all-reduce of F layers.3".
std::string describe(const Block& block, const Task& task);
/// "attention.out all-reduce of F layers.3 in F(stage 1, micro-batch 0)".
std::string describe(const Program& program, const Sequence& sequence, const Place& place);

const Task& task_at(const Program& program, const Sequence& sequence, const Place& place);

}  // namespace stratagem::program

// Explains a time that is too long to count: which task, and which constant makes it so.
#pragma once

#include <string>

#include "base/input_error.hpp"
#include "cost/kernel.hpp"
#include "cost/profile.hpp"
#include "cost/stack.hpp"

namespace stratagem::sim {

/// An error that names the task and the constant: the first constant such that the time could be
/// counted if it cost nothing.
InputError uncountable(const std::string& task, const cost::Kernel& kernel,
                       const cost::Profile& profile, const cost::Stack& stack, int gpus);

}  // namespace stratagem::sim

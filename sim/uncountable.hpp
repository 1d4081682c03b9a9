// Constants with which a task takes longer than can be counted.
#pragma once

#include <string>

#include "base/input_error.hpp"
#include "cost/kernel.hpp"
#include "cost/profile.hpp"
#include "cost/stack.hpp"

namespace stratagem::sim {

/// An error that names the task and the constant: the first one without which its time can be counted.
InputError uncountable(const std::string& task, const cost::Kernel& kernel,
                       const cost::Profile& profile, const cost::Stack& stack);

}  // namespace stratagem::sim

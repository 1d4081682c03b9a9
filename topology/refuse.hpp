// A no to a design or a fabric, whose place in the input its reader adds.
#pragma once

#include <string>

#include "base/input_error.hpp"

namespace stratagem::topology {

[[noreturn]] inline void refuse(const std::string& expected, const std::string& found) {
  throw InputError("", "", expected, found);
}

}  // namespace stratagem::topology

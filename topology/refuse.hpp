// Throws the error for a server design or a fabric that cannot be; its reader adds the place.
#pragma once

#include <string>

#include "base/input_error.hpp"

namespace stratagem::topology {

[[noreturn]] inline void refuse(const std::string& expected, const std::string& found) {
  throw InputError("", "", expected, found);
}

}  // namespace stratagem::topology

// Errors while tasks run, as opposed to errors in what was asked for.
#pragma once

#include <stdexcept>

namespace stratagem::execute {

/// what() names rank and task as far as they are known.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stratagem::execute

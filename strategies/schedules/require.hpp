// Refuses numbers of ranks, chunks or micro-batches that a schedule cannot have.
#pragma once

#include <string>

#include "base/input_error.hpp"

namespace stratagem::strategies {

/// Throws InputError unless `held`. The caller knows where in the user's file the number stands.
inline void require(bool held, const std::string& expected, int found) {
  if (!held) throw InputError("", "", expected, std::to_string(found));
}

}  // namespace stratagem::strategies

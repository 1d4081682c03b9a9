// Errors in the form of a file, as opposed to its meaning.
#pragma once

#include "base/input_error.hpp"

namespace stratagem {

/// Thrown by JsonReader for a missing or unknown key, an unknown word, or a value of the wrong kind
/// or out of range. It ends the program. Values that cannot go together are plain InputErrors: they
/// concern one run of a scenario, and the other runs are answered.
struct MalformedInput : InputError {
  using InputError::InputError;
};

}  // namespace stratagem

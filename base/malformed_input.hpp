// What is wrong with the form of a file, whatever it is to say.
#pragma once

#include "base/input_error.hpp"

namespace stratagem {

/// Thrown by JsonReader for a missing or unknown key, a value of another kind or below the least, an
/// unknown word: a slip in writing. Values that cannot go together are plain InputErrors, which
/// concern one run of a scenario and leave the others be.
struct MalformedInput : InputError {
  using InputError::InputError;
};

}  // namespace stratagem

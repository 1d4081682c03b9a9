// What a user's input can do wrong: one line that tells the file, the JSON path, what was expected
// and found.
#pragma once

#include <stdexcept>
#include <string>

namespace stratagem {

/// Thrown for anything that the user can mend. what() is one line:
///   plan.json: /runs/2/strategy/tensor: expected a whole number, found "two"
/// `path` is a JSON pointer and may be empty (the whole file); `found` may be empty (nothing to
/// show).
struct InputError : std::runtime_error {
  InputError(std::string file, std::string path, std::string expected, std::string found);

  std::string file;
  std::string path;
  std::string expected;
  std::string found;
};

/// A promise between our own functions was broken: a defect of ours, on in Release too.
struct BrokenPromise : std::logic_error {
  using std::logic_error::logic_error;
};

/// Throws BrokenPromise with `promise` unless `held`.
void expects(bool held, const char* promise);

}  // namespace stratagem

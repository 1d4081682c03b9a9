// What a user's input can do wrong, as one line; and the check of our own promises.
#include "base/input_error.hpp"

#include <utility>

namespace stratagem {
namespace {

std::string one_line(const std::string& file, const std::string& path, const std::string& expected,
                     const std::string& found) {
  std::string line;
  if (!file.empty()) line += file + ": ";
  if (!path.empty()) line += path + ": ";
  line += "expected " + expected;
  if (!found.empty()) line += ", found " + found;
  for (char& letter : line) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  return line;
}

}  // namespace

InputError::InputError(std::string file_name, std::string json_path, std::string what_was_expected,
                       std::string what_was_found)
    : std::runtime_error(one_line(file_name, json_path, what_was_expected, what_was_found)),
      file(std::move(file_name)),
      path(std::move(json_path)),
      expected(std::move(what_was_expected)),
      found(std::move(what_was_found)) {}

void expects(bool held, const char* promise) {
  if (!held) throw BrokenPromise(promise);
}

}  // namespace stratagem

// Errors of user input in one line, and the check of our own promises.
#include "base/input_error.hpp"

#include <utility>

#include "base/shortened.hpp"

namespace stratagem {
namespace {

std::string one_line(const std::string& file, const std::string& path, const std::string& expected,
                     const std::string& found) {
  constexpr std::size_t long_path = 400, long_words = 2000;
  std::string line;
  if (!file.empty()) line += shortened(file, long_path) + ": ";
  if (!path.empty()) line += shortened(path, long_path) + ": ";
  line += "expected " + shortened(expected, long_words);
  if (!found.empty()) line += ", found " + shortened(found, long_words);
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

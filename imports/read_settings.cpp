// Finds the format of a file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/input_error.hpp"
#include "base/read_file.hpp"
#include "imports/format.hpp"

namespace stratagem::imports {
namespace {

const Format& format_of(const std::string& text, const std::string& file, const std::string& name) {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    if (name.empty() ? format.is(text) : format.name == name) return format;
    names.push_back(format.name);
  }
  const auto says = [&](const char* key) { return text.find(key) != std::string::npos; };
  const std::string other = text.find_first_not_of(" \t\r\n{}[]") == std::string::npos
                                ? "nothing in it"
                            : says("\"question\"")    ? "a scenario, which `simulate` answers"
                            : says("\"hidden_size\"") ? "a config.json without \"model_type\""
                                                      : "another one (--from says which)";
  throw InputError(file, "", fmt::format("a file of {}", fmt::join(names, ", ")),
                   name.empty() ? other : name);
}

}  // namespace

Settings read_settings(const std::string& file, const std::string& format) {
  const std::string text = read_file(file);
  try {
    return format_of(text, file, format).read(text, file);
  } catch (const InputError& error) {
    throw InputError(file, error.path, error.expected, error.found);
  }
}

}  // namespace stratagem::imports

// Takes a pattern apart: the pass, then expressions between commas.
#include "strategies/language/cell_pattern.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

std::string without_spaces_around(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Splits at commas that stand in no inner parentheses: those of min(a, b) stay.
std::vector<std::string> arguments(const std::string& text) {
  std::vector<std::string> result(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  for (std::string& argument : result) argument = without_spaces_around(argument);
  return result;
}

void read_pass(CellPattern& pattern, const std::string& word, const std::string& path) {
  if (word == "F") return;
  if (word == "B" || word == "W") {
    pattern.pass = word == "B" ? placement::CellPass::backward : placement::CellPass::weight;
    return;
  }
  int repeat = 0;
  if (word.starts_with("F")) {
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + 1, end, repeat);
    if (error != std::errc() || stop != end) repeat = 0;
  }
  if (repeat < 1) throw InputError("", path, "a pass F, B, W, F1, F2, ...", "\"" + word + "\"");
  pattern.repeat = repeat - 1;
}

}  // namespace

CellPattern parse_cell_pattern(const std::string& text, const std::string& path) {
  const std::string whole = without_spaces_around(text);
  const std::size_t open = whole.find('(');
  if (open == std::string::npos || whole.back() != ')')
    throw InputError("", path, "a cell such as \"F(i, m)\"", "\"" + text + "\"");
  CellPattern pattern;
  read_pass(pattern, without_spaces_around(whole.substr(0, open)), path);
  for (const std::string& argument : arguments(whole.substr(open + 1, whole.size() - open - 2)))
    pattern.coordinates.emplace_back(argument, path);
  if (pattern.coordinates.size() != 2 && pattern.coordinates.size() != 3) {
    throw InputError("", path, "a stage, a micro-batch and perhaps a slice in \"" + text + "\"",
                     std::to_string(pattern.coordinates.size()) + " coordinates");
  }
  return pattern;
}

}  // namespace stratagem::strategies

// Which characters the plan language's names and numbers are made of, whatever the locale, and how
// its lists are taken apart.
#pragma once

#include <string>
#include <vector>

namespace stratagem::strategies {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Without the blanks around it.
inline std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Splits at `separator` where it is neither in {} nor in (); "" has one piece.
inline std::vector<std::string> split_outside_brackets(const std::string& text, char separator) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '{' || c == '(') ++depth;
    if (c == '}' || c == ')') --depth;
    if (c == separator && depth == 0) {
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

}  // namespace stratagem::strategies

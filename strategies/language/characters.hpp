// Which characters the plan language's names and numbers are made of, whatever the locale.
#pragma once

namespace stratagem::strategies {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace stratagem::strategies

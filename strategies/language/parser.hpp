// From the text of an expression to the steps that evaluate it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "strategies/language/expression.hpp"

namespace stratagem::strategies {

/// Values that may wait on the stack of an expression.
inline constexpr std::size_t deepest_stack = 64;

struct Parsed {
  std::vector<Instruction> code;
  std::vector<std::string> names;  ///< in the order in which they first appear
};

/// Throws InputError at `path`.
Parsed parse_expression(const std::string& text, const std::string& path);

/// Is it one word of letters, digits and _ that does not begin with a digit?
bool is_name(const std::string& text);

/// ` at column 3 of "i + * 2"`, the end of what an error expects.
std::string at_column(int column, const std::string& text);

}  // namespace stratagem::strategies

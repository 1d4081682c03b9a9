// Shortens long texts in messages.
#pragma once

#include <cstddef>
#include <string>

namespace stratagem {

/// The text, or the first `longest` bytes of it and how many are left out: "abc... (997 more
/// bytes)". Cuts no UTF-8 character in two.
std::string shortened(const std::string& text, std::size_t longest);

}  // namespace stratagem

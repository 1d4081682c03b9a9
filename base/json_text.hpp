// Compact JSON text and JSON pointers for messages; inside base only, where nlohmann/json may be
// seen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stratagem {

/// How much of a value is echoed.
inline constexpr std::size_t longest_echo = 60;

/// "/runs/0" and "a/b" give "/runs/0/a~1b" (RFC 6901).
std::string child_path(const std::string& path, std::string_view key);

/// "line 3, column 5: unexpected '}'; expected string literal", from what nlohmann/json says about
/// its `byte`-th character, counted from 1.
std::string syntax_error(std::string_view text, std::size_t byte, std::string_view what);

}  // namespace stratagem

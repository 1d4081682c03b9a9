// Bytes in the format of gzip (RFC 1952).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stratagem {

/// The same text always gives the same bytes: no name and no time is in them.
std::string gzipped(const std::string& text);

/// Are these the first bytes of a file that gzip wrote?
bool is_gzipped(std::string_view bytes);

/// What was packed; nothing if the bytes are broken or cut off. Of several packed files in a row it
/// is what was in all of them; what follows the last is ignored, as gzip does. Stops and returns
/// more than `most` bytes if there are more.
std::optional<std::string> unzipped(const std::string& bytes, std::size_t most);

}  // namespace stratagem

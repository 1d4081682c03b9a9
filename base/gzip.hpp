// Bytes in the format of gzip (RFC 1952).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace stratagem {

/// The same text always gives the same bytes: no name and no time is in them. Expects less than
/// 4 GiB.
std::string gzipped(const std::string& text);

/// Does it begin as gzip's files do?
bool is_gzipped(const std::string& bytes);

/// What was packed, of one file or of several one behind the other; nothing if the bytes are broken
/// or cut off. Stops and returns more than `most` bytes if there are more.
std::optional<std::string> unzipped(const std::string& bytes, std::size_t most);

}  // namespace stratagem

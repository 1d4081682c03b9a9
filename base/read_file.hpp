// Files that people name, read whole.
#pragma once

#include <string>

namespace stratagem {

/// The bytes of a file or of what a pipe brings. Throws InputError with the system's reason for what cannot
/// be read, for a device, which need not end, and for more than 1 GiB.
std::string read_file(const std::string& file);

}  // namespace stratagem

// Reads whole files that users name.
#pragma once

#include <string>

namespace stratagem {

/// The bytes of a file or a pipe; if gzip has packed them, what they were before. Throws InputError
/// with the system's reason if it cannot be read. Throws for a device, which may be endless, and
/// for more than 1 GiB.
std::string read_file(const std::string& file);

}  // namespace stratagem

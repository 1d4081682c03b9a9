// Files that are whole or not there.
#pragma once

#include <string>

namespace stratagem {

/// Writes a draft, "<file>.part", which then takes the place of the file: what was there stays as it was if
/// that fails, as on a full disk. A link stays one to what is written. What is there and no plain file, a pipe or a device, is written as it
/// is. Throws InputError with the file and the system's reason.
void write_file(const std::string& file, const std::string& text);

}  // namespace stratagem

// Files that are whole or not there.
#pragma once

#include <string>

namespace stratagem {

/// "-", and the names that the system has for it: /dev/stdout, /dev/fd/1.
bool is_standard_output(const std::string& file);

/// Sends on what was printed to standard output. Throws InputError with the system's reason if any of it is
/// lost, now or before.
void finish_standard_output();

/// Writes a draft, "<file>.part", which then takes the place of the file: what was there stays as it was if
/// that fails, as on a full disk. A link stays one to what is written. What is there and no plain file, a pipe or a device, is written as it
/// is, and so is standard output. Throws InputError with the file and the system's reason.
void write_file(const std::string& file, const std::string& text);

}  // namespace stratagem

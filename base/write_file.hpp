// Writes files so that each is either complete or not changed.
#pragma once

#include <string>

namespace stratagem {

/// Is it standard output: "-", or one of the system's names for it, /dev/stdout and /dev/fd/1?
bool is_standard_output(const std::string& file);

/// Flushes standard output. Throws InputError with the system's reason if any of the output was
/// lost, now or before.
void finish_standard_output();

/// Writes a draft, "<file>.part", and then replaces the file by it. If that fails, as on a full
/// disk, the old file stays as it was. A link stays a link, and its target is replaced. Standard
/// output, pipes and devices are written directly. A file whose name ends in ".gz" is packed as
/// gzip does. Throws InputError with the file and the system's reason.
void write_file(const std::string& file, const std::string& text);

}  // namespace stratagem

// The files that a command writes. All results are computed and all files checked before any is
// written.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace stratagem::commands {

/// A file still to be written; "-" is standard output.
struct Output {
  std::string file;
  std::string text;
  std::string note = {};  ///< printed behind the file's name
};

/// Refuses outputs that cannot be written, or would overwrite each other or an input, before any is
/// written. Makes the folders that they need. Throws InputError.
void check_outputs(const std::vector<Output>& outputs, const std::vector<std::string>& inputs);

/// The stream for what people read: standard output. If one of the outputs goes there, it is
/// standard error, so that another program can read the output.
std::FILE* for_people(const std::vector<Output>& outputs);

/// Writes them, and says so. Throws InputError for a file that cannot be written.
void write(const std::vector<Output>& outputs);
/// The same below what was printed already: behind an empty line.
void write_below(const std::vector<Output>& outputs);

/// Prints to standard error what was refused and which bounds do not hold, a line each. Returns the
/// exit code: `bad_input` if anything was refused.
int conclude(const std::vector<std::string>& refused, const std::vector<std::string>& broken);

/// A file's bytes; "" if it cannot be read (reading it later reports the error).
std::string bytes_of(const std::string& file);

}  // namespace stratagem::commands

// Files that a command writes: all is computed, and every file looked at, before any is written.
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

/// Where the command says what it has to say to people: on standard output or, if one of the outputs goes
/// there, on standard error, so that another program can read the output.
std::FILE* for_people(const std::vector<Output>& outputs);

/// Writes them, and says so. Throws InputError for a file that cannot be written.
void write(const std::vector<Output>& outputs);
/// The same below what was printed already: behind an empty line.
void write_below(const std::vector<Output>& outputs);

/// Says on standard error what was refused and what does not hold, a line each, and returns the exit code:
/// `bad_input` where anything was refused.
int conclude(const std::vector<std::string>& refused, const std::vector<std::string>& broken);

/// A file's bytes; of one that cannot be read "", which reading it will complain of.
std::string bytes_of(const std::string& file);

}  // namespace stratagem::commands

// The commands of the program. A file each defines a function that returns its Command, and all.cpp
// names that function.
#pragma once

#include <string>
#include <vector>

namespace stratagem::commands {

class Options;

enum ExitCode { done = 0, bad_input = 1, usage = 2, check_failed = 3 };

/// Takes the words behind the command's name; returns an exit code. Throws UsageError and
/// InputError.
using Run = int(const std::vector<std::string>& line);

struct Command {
  const char* name;
  const char* summary;
  Options (*options)();  ///< what its line may say
  Run* run;
};
/// In the order of --help.
const std::vector<Command>& all();

}  // namespace stratagem::commands

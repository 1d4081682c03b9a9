// The commands of the program: one file each, one line each in the table of all.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace stratagem::commands {

enum ExitCode { done = 0, bad_input = 1, usage = 2, check_failed = 3 };

/// Takes the words behind the command's name; returns an exit code. Throws UsageError and
/// InputError.
using Run = int(const std::vector<std::string>& line);
Run simulate, validate, execute, compare, explain, options, topology, calibrate;

struct Command {
  const char* name;
  const char* summary;
  Run* run;
};
std::span<const Command> all();

}  // namespace stratagem::commands

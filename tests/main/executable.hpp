// Runs the program as a user does, in a folder of its own, and keeps what it said.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/small_scenario.hpp"

namespace stratagem {

struct Ran {
  int exit = 0;
  std::string out;
  std::string err;
};

/// `cd folder && environment stratagem arguments`; the arguments are words for the shell, and so
/// are assignments of variables: "NAME=value ". What it prints goes to `out`, if that is given:
/// ">/dev/full", "| cat >file".
inline Ran run(const std::string& arguments, const TemporaryFolder& folder,
               const std::string& environment = "", const std::string& out = "") {
  const TemporaryFolder said;
  const std::string command = "cd '" + folder.path().string() + "' && " + environment +
                              STRATAGEM_EXECUTABLE " " + arguments + " 2>'" +
                              (said.path() / "err").string() + "' " +
                              (out.empty() ? ">'" + (said.path() / "out").string() + "'" : out);
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out.empty() ? said.read("out") : "",
          said.read("err")};
}

}  // namespace stratagem

// Starts the program with mpirun, as a user does, and looks at what the launcher has started.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/input_error.hpp"
#include "tests/main/executable.hpp"

namespace stratagem {

using Clock = std::chrono::steady_clock;

inline const std::string environment =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
    "OMPI_MCA_hwloc_base_binding_policy=none ASAN_OPTIONS=detect_leaks=0 ";
inline const std::string mpirun = STRATAGEM_MPIRUN " ";

/// A line of the shell in a folder.
inline Ran shell(const std::string& line, const TemporaryFolder& folder) {
  const TemporaryFolder said;
  const std::string command = "cd '" + folder.path().string() + "' && " + environment + line +
                              " >'" + (said.path() / "out").string() + "' 2>'" +
                              (said.path() / "err").string() + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said.read("out"), said.read("err")};
}

/// How often `text` has `part`.
inline int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

/// Starts a line of the shell, of which mpirun is the last word but its arguments; its process,
/// which ends when the test does.
inline pid_t started(const std::string& line) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  return launcher;
}

inline std::vector<pid_t> children_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) +
                     "/children");
  std::vector<pid_t> result;
  for (pid_t child = 0; file >> child;) result.push_back(child);
  return result;
}

/// Waits until `ready` or so much time has gone by. A file that cannot be read is not ready: it is
/// there for a moment before, when the program looks whether it can be written.
template <typename Ready>
bool eventually(std::chrono::seconds limit, const Ready& ready) {
  const auto now_ready = [&] {
    try {
      return ready();
    } catch (const InputError&) {
      return false;
    }
  };
  const auto end = Clock::now() + limit;
  while (!now_ready()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace stratagem

// What a process still does when it is asked to end.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace stratagem::commands {

/// As long as it lives, SIGTERM and SIGINT no longer end this process at once: `act` is called with
/// the signal's name, in a thread of its own while all others go on, and the process ends with the
/// exit code that it returns. Launchers send SIGTERM to all ranks when one has died, and SIGKILL a
/// second later. One at a time in a process.
class Termination {
 public:
  explicit Termination(std::function<int(const std::string& signal)> act);
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;
  ~Termination();

 private:
  std::function<int(const std::string& signal)> act_;
  std::thread thread_;
};

}  // namespace stratagem::commands

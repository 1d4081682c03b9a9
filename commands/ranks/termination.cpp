// A signal's handler may do next to nothing: it writes a byte into a pipe that a thread reads.
#include "commands/ranks/termination.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::commands {
namespace {

std::array<int, 2> ends = {-1, -1};  // of the pipe: to read from, to write to
constexpr std::array signals = {SIGTERM, SIGINT};
std::array<struct sigaction, signals.size()> before;

void note(int signal) {
  const int error = errno;  // of whatever is interrupted
  const auto byte = static_cast<char>(signal);
  static_cast<void>(!::write(ends[1], &byte, 1));
  errno = error;
}

}  // namespace

Termination::Termination(std::function<int(const std::string& signal)> act) : act_(std::move(act)) {
  expects(ends[0] < 0, "one at a time");
  expects(pipe(ends.data()) == 0, "a process has two file descriptors left");
  struct sigaction action = {};
  action.sa_handler = &note;
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before[i]);
  thread_ = std::thread([this] {
    char byte = 0;
    ssize_t got = 0;
    do {
      got = read(ends[0], &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 1 && byte != 0) std::_Exit(act_(byte == SIGTERM ? "SIGTERM" : "SIGINT"));
  });
}

Termination::~Termination() {
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before[i], nullptr);
  note(0);
  thread_.join();
  for (int& end : ends) {
    close(end);
    end = -1;
  }
}

}  // namespace stratagem::commands

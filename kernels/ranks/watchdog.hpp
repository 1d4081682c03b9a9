// Watches ranks that wait for each other: notices one that died, and waits that take too long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::kernels {

/// A process as Linux knows it: numbers of processes are given out again, times of starting are
/// not.
struct Process {
  std::int64_t number = 0;
  std::uint64_t started = 0;  ///< in ticks since the system started; 0 where it is not running
};

/// From /proc. A process that has ended does not run, whether or not its parent has asked for its
/// exit code.
Process process_of(std::int64_t number);
bool runs(const Process& process);

/// A rank whose process can be seen from here.
struct Neighbour {
  int rank = 0;
  Process process;
};

/// A thread that ends this process, with one line on stderr and exit code 1, when an operation
/// waits for a neighbour that has died, or lasts longer than `limit`. It looks twice a second, for
/// neighbours from a second after the operation's begin on.
class Watchdog {
 public:
  Watchdog(int rank, std::vector<Neighbour> neighbours, Seconds limit);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// Called in its thread with what is wrong, after the line on stderr, while the operation still
  /// waits: what the process did before that may be read. Returns the exit code, in place of 1.
  void before_the_end(std::function<int(const std::string& why)> act);

  /// "rank 1 (process 123)": a neighbour whose process is gone; "" if all run.
  [[nodiscard]] std::string gone() const;

  /// Between these two an operation is under way; `operation` and `group` must live until then.
  void begin(const char* operation, const std::string& group);
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  void look();
  /// Why to give up, or "".
  [[nodiscard]] std::string trouble() const;

  int rank_;
  std::vector<Neighbour> neighbours_;
  Seconds limit_;
  std::function<int(const std::string& why)> act_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stopped_ = false;
  const char* operation_ = nullptr;  ///< none is under way
  const std::string* group_ = nullptr;
  Clock::time_point begin_;
  std::thread thread_;  ///< last: it uses all the others
};

}  // namespace stratagem::kernels

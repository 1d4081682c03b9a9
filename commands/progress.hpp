// How far a command is: a line on a terminal, written over until the work ends; nothing elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace stratagem::commands {

/// The line, while it lives. It appears after a second, and is redrawn twice a second.
class ProgressLine {
 public:
  /// `text` is called from a thread of its own.
  explicit ProgressLine(std::function<std::string()> text);

  [[nodiscard]] static bool is_shown();

 private:
  std::jthread drawer_;
};

/// Words for the line, and steps of work with the time left; told from any thread.
class Progress {
 public:
  /// Until something is told: "reading scenarios, 3 s".
  explicit Progress(std::string words);

  /// Other words, timed anew.
  void tell(std::string words);
  /// "[####......] 12 of 30 runs, 8 s left": as long as the steps that are done took each. Steps of
  /// another name are timed anew.
  void tell(const std::string& name, std::size_t done, std::size_t all,
            const std::string& more = "");

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string text() const;

  mutable std::mutex mutex_;
  std::string words_;
  std::string name_;
  std::size_t done_ = 0;
  std::size_t all_ = 0;
  std::string more_;
  Clock::time_point begin_ = Clock::now();
  ProgressLine line_;
};

/// "[####......] 12 of 30 runs".
std::string steps_text(const std::string& name, std::size_t done, std::size_t all);

}  // namespace stratagem::commands

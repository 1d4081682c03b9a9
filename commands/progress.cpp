// Draws on standard error, so that what is printed can be piped.
#include "commands/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <utility>

namespace stratagem::commands {
namespace {

constexpr auto patience = std::chrono::seconds(1);
constexpr auto pause = std::chrono::milliseconds(500);

/// A line that is longer would stay on the terminal.
std::size_t columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col - std::size_t{1} : 78;
}

void draw(const std::string& text) {
  fmt::print(stderr, "\r\x1b[K{}", text.substr(0, columns()));
  std::fflush(stderr);
}

void draw_until(const std::stop_token& stop, const std::function<std::string()>& text) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any changed;
  const auto never = [] { return false; };
  changed.wait_for(lock, stop, patience, never);
  if (stop.stop_requested()) return;
  while (!stop.stop_requested()) {
    draw(text());
    changed.wait_for(lock, stop, pause, never);
  }
  draw("");
}

}  // namespace

bool ProgressLine::is_shown() { return isatty(STDERR_FILENO) != 0; }

ProgressLine::ProgressLine(std::function<std::string()> text) {
  if (is_shown())
    drawer_ = std::jthread(
        [text = std::move(text)](const std::stop_token& stop) { draw_until(stop, text); });
}

Progress::Progress(std::string words)
    : words_(std::move(words)), line_([this] { return text(); }) {}

void Progress::tell(std::string words) {
  const std::lock_guard lock(mutex_);
  words_ = std::move(words);
  name_.clear();
  begin_ = Clock::now();
}

void Progress::tell(const std::string& name, std::size_t done, std::size_t all,
                    const std::string& more) {
  const std::lock_guard lock(mutex_);
  if (name != name_) {
    begin_ = Clock::now();
    done_ = 0;
  }
  name_ = name;
  done_ = std::max(done, done_);  // threads may tell in another order than they count
  all_ = all;
  more_ = more;
}

std::string Progress::text() const {
  const std::lock_guard lock(mutex_);
  const std::chrono::duration<double> spent = Clock::now() - begin_;
  if (name_.empty()) return fmt::format("{}, {:.0f} s", words_, spent.count());
  std::string text = steps_text(name_, done_, all_);
  if (done_ > 0) {
    const double each = spent.count() / static_cast<double>(done_);
    text += fmt::format(", {:.0f} s left", std::max(1.0, each * static_cast<double>(all_ - done_)));
  }
  return text + more_;
}

std::string steps_text(const std::string& name, std::size_t done, std::size_t all) {
  constexpr std::size_t cells = 10;
  const std::size_t full = all == 0 ? cells : cells * done / all;
  return fmt::format("[{:#<{}}{:.<{}}] {} of {} {}", "", full, "", cells - full, done, all, name);
}

}  // namespace stratagem::commands

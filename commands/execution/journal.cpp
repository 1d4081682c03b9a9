// Replaces the file at once by a draft, so that a reader never finds half of one.
#include "commands/execution/journal.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/write_file.hpp"
#include "commands/all.hpp"
#include "commands/outputs.hpp"

namespace stratagem::commands {
namespace {

/// The reason while there is none: what remains where all ranks are killed at once.
constexpr const char* unfinished =
    "not done: it still runs, or all of its ranks were killed at once";

}  // namespace

Journal::Journal(Of of, const execute::CurrentTask& current)
    : of_(std::move(of)), current_(current) {
  // A device or a pipe is no file that another one could take the place of.
  const bool stays =
      std::filesystem::exists(of_.file) && !std::filesystem::is_regular_file(of_.file);
  if (stays || is_standard_output(of_.file)) of_.file.clear();
  if (of_.rank == 0 && !of_.file.empty()) write(unfinished);
  written_ = Clock::now();
}

Journal::~Journal() {
  if (world_ != nullptr) world_->before_the_end({});
}

void Journal::watch(kernels::World& world) {
  world_ = &world;
  world.before_the_end([this](const std::string& why) { return end(why); });
  termination_.emplace([this](const std::string& signal) {
    const std::string gone = world_->gone();
    return end("ended by " + signal + (gone.empty() ? "" : "; " + gone + " is gone"));
  });
  if (of_.rank == 0) line_.emplace([this] { return current_.text(); });
}

void Journal::change(const std::function<void()>& change) {
  const std::lock_guard lock(mutex_);
  change();
  if (of_.rank > 0 || of_.file.empty() || Clock::now() - written_ < std::chrono::milliseconds(500))
    return;
  write(unfinished);
  written_ = Clock::now();
}

void Journal::stopped(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (of_.file.empty()) return;
  const std::string there = bytes_of(of_.file);
  if (there.find(unfinished) != std::string::npos) write(reason);
}

std::string Journal::placed(const std::string& what) const {
  return "rank " + std::to_string(of_.rank) + ": " + what + ", " + current_.text();
}

/// In the thread of a watchdog or of a signal, while the rank's own waits or goes on.
int Journal::end(const std::string& reason) {
  fmt::print(stderr, "stratagem: {}\n", placed(reason));
  stopped(placed(reason));
  return check_failed;
}

/// A disk that is full is no reason to stop here: the end will say so.
void Journal::write(const std::string& reason) const {
  const std::string draft = of_.file + ".part" + std::to_string(of_.rank);
  {
    std::ofstream stream(draft, std::ios::binary);
    stream << of_.describe().set("status", "stopped").set("reason", reason).text(2) << "\n";
  }
  std::error_code ignored;
  std::filesystem::rename(draft, of_.file, ignored);
}

}  // namespace stratagem::commands

// Reads /proc, and gives up for a process that waits in a library.
#include "kernels/ranks/watchdog.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

namespace stratagem::kernels {
namespace {

/// When a running process was started; 0 if there is none. The second field of the file, a name in
/// brackets, may have blanks; the state is the third, the time the 22nd.
std::uint64_t start_of(std::int64_t number) {
  std::ifstream file("/proc/" + std::to_string(number) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  std::string word;
  rest >> word;
  if (word == "Z" || word == "X") return 0;
  for (int field = 4; field <= 21; ++field) rest >> word;
  std::uint64_t started = 0;
  rest >> started;
  return started;
}

}  // namespace

Process process_of(std::int64_t number) { return {.number = number, .started = start_of(number)}; }

bool runs(const Process& process) {
  return process.started != 0 && start_of(process.number) == process.started;
}

Watchdog::Watchdog(int rank, std::vector<Neighbour> neighbours, Seconds limit)
    : rank_(rank), neighbours_(std::move(neighbours)), limit_(limit), thread_([this] { look(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopping_.notify_all();
  thread_.join();
}

void Watchdog::begin(const char* operation, const std::string& group) {
  const std::lock_guard lock(mutex_);
  operation_ = operation;
  group_ = &group;
  begin_ = Clock::now();
}

void Watchdog::end() {
  const std::lock_guard lock(mutex_);
  operation_ = nullptr;
}

void Watchdog::before_the_end(std::function<int(const std::string& why)> act) {
  const std::lock_guard lock(mutex_);
  act_ = std::move(act);
}

std::string Watchdog::gone() const {
  for (const Neighbour& neighbour : neighbours_) {
    if (!runs(neighbour.process))
      return "rank " + std::to_string(neighbour.rank) + " (process " +
             std::to_string(neighbour.process.number) + ")";
  }
  return "";
}

std::string Watchdog::trouble() const {
  if (operation_ == nullptr) return "";
  const std::chrono::duration<double> lasted = Clock::now() - begin_;
  const std::string where = " during " + std::string(operation_) + " of " + *group_;
  if (lasted.count() > 1) {
    if (const std::string rank = gone(); !rank.empty()) return rank + " died" + where;
  }
  if (lasted.count() <= limit_.value) return "";
  const auto seconds = static_cast<long>(std::lround(limit_.value));
  return "gave up after " + std::to_string(seconds) + " s" + where +
         ": a rank did not come, or has died on another server";
}

void Watchdog::look() {
  std::unique_lock lock(mutex_);
  while (!stopping_.wait_for(lock, std::chrono::milliseconds(500), [this] { return stopped_; })) {
    const std::string why = trouble();
    if (why.empty()) continue;
    std::cerr << "stratagem: rank " + std::to_string(rank_) + ": " + why + "\n" << std::flush;
    std::_Exit(act_ ? act_(why) : 1);  // the library that waits would not return for an exception
  }
}

}  // namespace stratagem::kernels

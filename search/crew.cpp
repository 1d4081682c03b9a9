// Lends each helper to one thread at a time.
#include "search/crew.hpp"

#include <utility>

namespace stratagem::search {

void Crew::join(std::unique_ptr<Helper> helper) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(helper));
}

std::size_t Crew::size() const {
  const std::lock_guard lock(mutex_);
  return free_.size() + busy_;
}

std::unique_ptr<Helper> Crew::free_one() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  std::unique_ptr<Helper> helper = std::move(free_.back());
  free_.pop_back();
  ++busy_;
  return helper;
}

std::optional<std::string> Crew::ask(const std::string& question) {
  while (std::unique_ptr<Helper> helper = free_one()) {
    std::optional<std::string> answer = helper->ask(question);
    const std::lock_guard lock(mutex_);
    --busy_;
    if (!answer) continue;
    free_.push_back(std::move(helper));
    if (answer->empty()) return std::nullopt;
    return answer;
  }
  return std::nullopt;
}

}  // namespace stratagem::search

// A cache of values that follow from a key alone, shared by threads.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace stratagem {

/// A value is there as long as anybody holds it, and as one of the last `kept` that were made.
template <typename Key, typename Value>
class Memo {
 public:
  using Shared = std::shared_ptr<const Value>;

  explicit Memo(std::size_t kept) : kept_(kept) {}

  /// What `make`, called without arguments, returns for this key, now or before. Threads that ask
  /// for the same new key at once may each make it.
  template <typename Make>
  Shared of(const Key& key, const Make& make) {
    if (Shared known = find(key)) return known;
    Shared made = std::make_shared<const Value>(make());
    const std::scoped_lock lock(mutex_);
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    known_.emplace_back(key, made);
    last_.push_back(made);
    if (last_.size() > kept_) last_.pop_front();
    return made;
  }

 private:
  Shared find(const Key& key) {
    const std::scoped_lock lock(mutex_);
    for (const auto& [known, value] : known_) {
      if (known != key) continue;
      if (Shared shared = value.lock()) return shared;
    }
    return nullptr;
  }

  std::size_t kept_;
  std::mutex mutex_;
  std::vector<std::pair<Key, std::weak_ptr<const Value>>> known_;
  std::deque<Shared> last_;
};

}  // namespace stratagem

// The processes that help a search: they evaluate plans that it asks for.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stratagem::search {

/// Answers one question at a time.
class Helper {
 public:
  Helper() = default;
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  virtual ~Helper() = default;

  /// Nothing if it is gone: then it is not asked again. "" if it has no answer, but an error, which
  /// whoever asks the question of himself sees.
  virtual std::optional<std::string> ask(const std::string& question) = 0;
};

/// Helpers that come and go while a search runs. Several threads may use it at once.
class Crew {
 public:
  void join(std::unique_ptr<Helper> helper);
  /// Helpers, busy ones too.
  [[nodiscard]] std::size_t size() const;
  /// The answer of a helper that is free. If one is gone before it has answered, another is asked.
  /// Nothing if none is free, or it has no answer.
  std::optional<std::string> ask(const std::string& question);

 private:
  std::unique_ptr<Helper> free_one();

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Helper>> free_;
  std::size_t busy_ = 0;
};

}  // namespace stratagem::search

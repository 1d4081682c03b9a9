// Answers that outlive a search, in an SQLite file.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace stratagem::search {

/// Texts by question, both within a context: all that answers depend on beside the question. What
/// is kept is in the file when `keep` returns, so a search that is killed loses only what was under
/// way. Several threads, and several processes of one machine, may use a file at once. SQLite's
/// temporary files `-wal` and `-shm` lie beside it meanwhile.
class Store {
 public:
  /// Opens the file, or makes it. Throws InputError if it cannot be written or is no such store.
  Store(const std::string& file, const std::string& context);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Throws InputError if SQLite fails, as on a full disk.
  [[nodiscard]] std::optional<std::string> find(const std::string& question) const;
  void keep(const std::string& question, const std::string& answer);

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

}  // namespace stratagem::search

// Two tables: contexts, and answers by context and question.
#include "search/store.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <mutex>

#include "base/input_error.hpp"

namespace stratagem::search {
namespace {

constexpr std::int64_t ours = 0x53545241;  // "STRA", in the file's header
constexpr std::int64_t version = 1;        // of the tables
constexpr int patience_ms = 60000;         // for other processes that write

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

/// Makes a statement ready for the next time, also where this one fails.
struct Reset {
  void operator()(sqlite3_stmt* statement) const { sqlite3_reset(statement); }
};
using Running = std::unique_ptr<sqlite3_stmt, Reset>;

}  // namespace

struct Store::Database {
  explicit Database(std::string name) : file(std::move(name)) {
    // SQLite keeps nothing of files with such names.
    if (file.empty() || file.starts_with(':'))
      throw InputError(file, "", "the name of a file", file);
    sqlite3* opened = nullptr;
    const int done =
        sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    handle.reset(opened);
    if (done != SQLITE_OK) fail();
    sqlite3_busy_timeout(opened, patience_ms);
  }

  [[noreturn]] void fail() const {
    throw InputError(file, "", "an SQLite file that can be written",
                     handle ? sqlite3_errmsg(handle.get()) : "no memory");
  }
  void run(const std::string& sql) const {
    if (sqlite3_exec(handle.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }
  [[nodiscard]] Statement prepared(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) fail();
    return Statement(statement);
  }
  /// Expects that the text lives until the statement has run.
  void bind(const Statement& statement, int place, const std::string& text) const {
    if (sqlite3_bind_text64(statement.get(), place, text.data(), text.size(), SQLITE_STATIC,
                            SQLITE_UTF8) != SQLITE_OK)
      fail();
  }
  /// Is there a row?
  [[nodiscard]] bool step(const Statement& statement) const {
    const int done = sqlite3_step(statement.get());
    if (done != SQLITE_ROW && done != SQLITE_DONE) fail();
    return done == SQLITE_ROW;
  }
  [[nodiscard]] std::int64_t number(const std::string& sql) const {
    const Statement statement = prepared(sql);
    return step(statement) ? sqlite3_column_int64(statement.get(), 0) : 0;
  }

  /// Makes the tables of a file that has none. Nothing of a file that is no store changes.
  void begin() const {
    run("BEGIN IMMEDIATE");
    const std::int64_t application = number("PRAGMA application_id");
    const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
    if (application != ours && !(application == 0 && empty))
      throw InputError(file, "", "a store of `stratagem search`", "another SQLite file");
    if (!empty && number("PRAGMA user_version") != version)
      throw InputError(file, "", "a store of this version of `stratagem search`", "another one's");
    run("CREATE TABLE IF NOT EXISTS contexts (id INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL);"
        "CREATE TABLE IF NOT EXISTS answers (context INTEGER NOT NULL, question TEXT NOT NULL,"
        " answer TEXT NOT NULL, PRIMARY KEY (context, question)) WITHOUT ROWID;"
        "PRAGMA application_id = " +
        std::to_string(ours) + "; PRAGMA user_version = " + std::to_string(version) +
        "; COMMIT; PRAGMA synchronous = NORMAL");
    // Faster, and remembered by the file. It may fail while another process is at it.
    sqlite3_exec(handle.get(), "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
  }
  /// The number of a context, which is new or was there.
  [[nodiscard]] std::int64_t number_of(const std::string& text) const {
    const Statement adding = prepared("INSERT OR IGNORE INTO contexts (text) VALUES (?1)");
    bind(adding, 1, text);
    static_cast<void>(step(adding));
    const Statement looking = prepared("SELECT id FROM contexts WHERE text = ?1");
    bind(looking, 1, text);
    expects(step(looking), "what was added to the table is there");
    return sqlite3_column_int64(looking.get(), 0);
  }

  std::string file;
  std::unique_ptr<sqlite3, Close> handle;
  Statement finding, keeping;
  std::mutex mutex;
};

Store::Store(const std::string& file, const std::string& context)
    : database_(std::make_unique<Database>(file)) {
  Database& database = *database_;
  database.begin();
  const std::string number = std::to_string(database.number_of(context));
  database.finding = database.prepared("SELECT answer FROM answers WHERE context = " + number +
                                       " AND question = ?1");
  database.keeping =
      database.prepared("INSERT OR REPLACE INTO answers VALUES (" + number + ", ?1, ?2)");
}

Store::~Store() = default;

std::optional<std::string> Store::find(const std::string& question) const {
  const std::scoped_lock lock(database_->mutex);
  const Statement& finding = database_->finding;
  const Running running(finding.get());
  database_->bind(finding, 1, question);
  std::optional<std::string> answer;
  if (database_->step(finding)) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(finding.get(), 0));
    answer.emplace(text, sqlite3_column_bytes(finding.get(), 0));
  }
  return answer;
}

void Store::keep(const std::string& question, const std::string& answer) {
  const std::scoped_lock lock(database_->mutex);
  const Statement& keeping = database_->keeping;
  const Running running(keeping.get());
  database_->bind(keeping, 1, question);
  database_->bind(keeping, 2, answer);
  static_cast<void>(database_->step(keeping));
}

}  // namespace stratagem::search

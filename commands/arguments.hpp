// What a command understands of its line, and what it was given.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace stratagem::commands {

/// A command line that cannot be understood.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Options of one command. A name may have a letter before it: "o,output".
class Options {
 public:
  Options(std::string title, std::string summary)
      : title_(std::move(title)), summary_(std::move(summary)) {}

  Options& flag(std::string name, std::string help);
  Options& text(std::string name, std::string help, std::optional<std::string> otherwise = {});
  Options& texts(std::string name, std::string help);
  Options& whole(std::string name, std::string help, std::optional<int> otherwise = {});
  Options& real(std::string name, std::string help);
  /// The values that the option before it may have.
  Options& among(std::vector<std::string> words);
  /// The kind of file that the option before it writes, by its ending: ".html".
  Options& ending(std::string ending);
  /// Options that need no name, in this order; the last takes all that is left if it takes several.
  Options& positional(std::vector<std::string> names, std::string help = {});

  enum class Kind { flag, text, texts, whole, real };
  struct Option {
    Kind kind;
    std::string name, help;
    std::optional<std::string> otherwise;
    std::vector<std::string> words;  ///< its values; none: any
    std::string ending = {};         ///< of the file that it names; "": any
    /// "output" of "o,output".
    [[nodiscard]] std::string long_name() const { return name.substr(name.find(',') + 1); }
  };
  [[nodiscard]] const std::vector<Option>& all() const { return options_; }
  [[nodiscard]] const std::string& summary() const { return summary_; }
  [[nodiscard]] bool is_positional(const std::string& name) const;

 private:
  friend class Arguments;
  std::string title_, summary_, positional_help_;
  std::vector<Option> options_;
  std::vector<std::string> positional_;
};

/// The whole number that a text is from its first character to its last.
std::optional<int> whole_number(const std::string& text);

/// What was given. Values of options without a default may be asked for only where `has`.
class Arguments {
 public:
  /// Throws UsageError for what the options do not know, or of which a value is of another kind or
  /// not among its words.
  Arguments(const Options& options, const std::vector<std::string>& line);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> texts(const std::string& name) const;
  [[nodiscard]] int whole(const std::string& name) const;
  [[nodiscard]] double real(const std::string& name) const;

  /// The text. Throws UsageError if it is missing.
  [[nodiscard]] std::string required(const std::string& name) const;
  [[nodiscard]] std::string text_or_nothing(const std::string& name) const;

  /// If the line asks for help: prints it.
  [[nodiscard]] bool helped() const;

 private:
  struct Parsed;
  std::unique_ptr<Parsed> parsed_;
};

}  // namespace stratagem::commands

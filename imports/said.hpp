// Settings of a file by name, arguments of a launch script or members of a JSON document, and which
// of them were read.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json_writer.hpp"

namespace stratagem::imports {

/// Values by name; what was asked for counts as read.
class Said {
 public:
  /// Arguments "--name value ..." wherever they stand: on a command line, in a variable or an array
  /// of a shell script. Variables that the text sets to a plain value ("TP=8"), or that the
  /// environment has, are replaced.
  /// Underscores of names count as hyphens. Of several arguments of one name the last counts.
  static Said arguments(const std::string& text);
  /// Members of a JSON document, those of objects as "zero_optimization.stage"; null says nothing.
  /// Throws InputError if it is no JSON object.
  static Said json(const std::string& text, const std::string& file);
  /// Words "model.hidden_size=64" of a command line, as Hydra's, without a "+" or "++" before them;
  /// null says nothing.
  static Said overrides(const std::string& text);

  /// A setting of so many words; of several of one name the last counts.
  void add(const std::string& name, std::vector<std::string> words, const std::string& text);

  /// Another name for a setting that is there, unless that is there, too.
  void rename(const std::string& from, const std::string& to);

  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  /// The value, of several words the first, of a flag ""; nothing if it is not there.
  std::optional<std::string> take(const std::string& name);
  /// All words of a value; none if it is not there.
  std::vector<std::string> take_all(const std::string& name);
  /// Is it there, and not "false"? Throws InputError for another value of a document than true or
  /// false; on a command line what stands behind a flag is not its value.
  bool flag(const std::string& name);
  /// Throws InputError if it is there and no whole number of at least `least`.
  std::optional<int> number(const std::string& name, int least = 1);
  /// Sets a key of an object to that number, if it is there.
  void copy(const std::string& name, Json& object, const std::string& key);
  /// Throws InputError if it is there and no number.
  std::optional<double> real(const std::string& name);

  /// "window-size 3" as the file writes it: "--window-size 3", or "model.window_size: 3".
  [[nodiscard]] std::string as_written(const std::string& argument) const;

  struct Value {
    std::string name;
    std::string text;  ///< as it was written: "--log-interval 1"
  };
  /// What was not read, in order.
  [[nodiscard]] std::vector<Value> left() const;
  /// The names, as the file would write them, that were asked for, are not there, and may be meant;
  /// "" if there is none.
  [[nodiscard]] std::string slip_of(const Value& value) const;

 private:
  [[nodiscard]] std::string without_value(const std::string& name) const;

  std::map<std::string, std::vector<std::string>> values_;
  std::map<std::string, std::string> unset_;  ///< what of the shell stands in place of a value
  std::map<std::string, std::string> texts_;
  std::vector<std::string> order_;
  std::set<std::string> read_;
  std::set<std::string> absent_;  ///< asked for, and not there
};

}  // namespace stratagem::imports

// Reads JSON by name and type, knows where it stands in the file, and refuses keys that nobody
// asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem {

/// A position in a JSON document. Cheap to copy; the document lives as long as any reader of it.
///
/// A reader may stand on several layers of objects: a key is taken from the first layer that has
/// it, and errors name the place where the value was found. Where several layers hold an object
/// under the same key, the child is layered too, so a run overrides single fields of the scenario's
/// defaults. null hides what the layers below have under the key, as if nobody had it.
///
/// Objects remember which keys were asked for, over all copies of the reader. `finish` throws
/// InputError for the first key (in the order of the file) that was never asked for, naming the
/// nearest one that was. A layer taken from `defaults` is not checked by the readers over it, since
/// another run may ask for what this one leaves; its owner calls finish on the defaults themselves
/// when all runs have been read. Several threads may read one document.
class JsonReader {
 public:
  /// Throws InputError if the file cannot be opened or is not JSON (with line and column).
  static JsonReader from_file(const std::string& file);
  /// A value that stands at a path of a file, for error messages. Throws InputError as above.
  static JsonReader from_text(std::string_view text, const std::string& file_name,
                              const std::string& path = "");

  JsonReader(const JsonReader&);
  JsonReader(JsonReader&&) noexcept;
  JsonReader& operator=(const JsonReader&);
  JsonReader& operator=(JsonReader&&) noexcept;
  ~JsonReader();

  /// This object, with whatever it lacks taken from `defaults` (which may be of another file).
  [[nodiscard]] JsonReader over(const JsonReader& defaults) const;

  [[nodiscard]] bool has(std::string_view key) const;
  /// The value under `key`; throws InputError if it is missing:
  /// `/runs/0: expected the key "name", found only "strategy", "expect"`. A key that was probably
  /// written for it is named.
  [[nodiscard]] JsonReader at(std::string_view key) const;
  [[nodiscard]] std::optional<JsonReader> find(std::string_view key) const;
  /// All keys in the order of the file, first layer first; marks them as read.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// The elements of an array.
  [[nodiscard]] std::vector<JsonReader> elements() const;

  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_null() const;

  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] std::int64_t whole_number() const;
  /// A whole number >= `least`.
  [[nodiscard]] std::int64_t at_least(std::int64_t least) const;
  /// A whole number from `least` to `most`.
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) const;
  /// A string with a unit and no minus sign, such as "450 GB/s"; see parse_quantity.
  template <typename Q>
  [[nodiscard]] Q quantity() const;
  /// One of the given words; the error lists them and names the nearest.
  [[nodiscard]] std::string one_of(const std::vector<std::string>& words) const;

  /// Throws InputError for a key of this object that nobody asked for, or of an object below it
  /// that was read. Leaves out what comes from defaults (see above).
  void finish() const;
  /// Marks this value and everything below it as read.
  void skip() const;

  [[nodiscard]] const std::string& file() const;
  /// The JSON pointer of this value, "" for the whole document.
  [[nodiscard]] std::string path() const;
  /// This value as compact JSON text, its layers merged.
  [[nodiscard]] std::string dump() const;
  /// Throws InputError at this value.
  [[noreturn]] void fail(const std::string& expected) const;
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const;

 private:
  struct Document;
  struct Layer;
  std::vector<Layer> layers_;
  explicit JsonReader(std::vector<Layer> layers);
};

/// What `read`, a function or a member of JsonReader, makes of the value under a key, if it is
/// there.
template <typename Read, typename T = std::invoke_result_t<Read, const JsonReader&>>
std::optional<T> read_if_there(const JsonReader& object, std::string_view key, Read read) {
  const auto value = object.find(key);
  return value ? std::optional<T>(std::invoke(read, *value)) : std::nullopt;
}

/// The same, and what is empty if it is not there.
template <typename Read, typename T = std::invoke_result_t<Read, const JsonReader&>>
T read_or_empty(const JsonReader& object, std::string_view key, Read read) {
  return read_if_there(object, key, read).value_or(T{});
}

/// Throws InputError at `where` unless `word`, a key or the like, is one of `known`; names the
/// nearest: `expected a kind of operator (did you mean "gelu"?), found "gleu"`.
void check_word(const JsonReader& where, const std::string& word,
                const std::vector<std::string>& known, const std::string& expected);

}  // namespace stratagem

// Options that users write in JSON, each declared once: its reader, its JSON schema and its line in
// the docs follow.
//
//   const OptionList<Zero> options = {
//       {"stage", &Zero::stage, whole(0, 3), "1: optimizer states; 2: gradients", must_be_there},
//       {"prefetch", &Zero::prefetch, whole(0, 1'000), "segments gathered ahead"}};
//   const Zero zero = read_object(options, reader);
//
// The default is that of the struct; it is shown, unless the declaration says it in other words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"

namespace stratagem {

struct OptionText;

/// The values that a key takes.
struct Values {
  Json schema;                   ///< JSON schema, draft 7
  std::string words;             ///< the same in words: "1 to 9"
  std::vector<OptionText> keys;  ///< of those that are objects; the first tells them from others
};

/// In place of a default: the object is wrong without the key.
inline constexpr const char* must_be_there = "must be there";

/// A key of an object, as schemas and tables show it.
struct OptionText : Values {
  std::string key;
  std::string sentence;  ///< what it does
  std::string usual;     ///< the default in words, or `must_be_there`
  /// Values that are worth trying where a search is not told which; none: the default stays.
  std::vector<Json> tried = {};
  /// A key that a model must have for that: "experts"; "": any model.
  std::string tried_where = {};

  [[nodiscard]] bool required() const { return usual == must_be_there; }
};

/// How a value is written.
template <typename T>
struct Format : Values {
  /// Throws InputError where the value stands.
  std::function<T(const JsonReader&)> read;
  /// As a user would write it; empty: as JSON has it, if it has.
  std::function<std::string(const T&)> show = {};

  [[nodiscard]] const Values& values() const { return *this; }
};

/// A whole number; at most as many as any machine room holds unless `most` says otherwise.
Format<std::int64_t> whole(std::int64_t least, std::int64_t most = 1'000'000);
/// A number above 0.
Format<double> positive(std::int64_t most);
/// true or false.
Format<bool> flag();
/// Any text.
Format<std::string> text();
/// One of some words.
Format<std::string> words(const std::vector<std::string>& known);
/// A size above zero, such as "25 MiB".
Format<Bytes> size();

/// What a format of one type reads, as another type.
template <typename To, typename From, typename Convert>
Format<To> converted(const Format<From>& format, Convert convert) {
  return {format.values(), [read = format.read, convert](const JsonReader& reader) -> To {
            return convert(read(reader));
          }};
}

/// One of some words that stand for values.
template <typename T>
Format<T> choice(std::vector<std::pair<std::string, T>> known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) names.push_back(name);
  Format<T> format = converted<T>(words(names), [known](const std::string& word) {
    return std::ranges::find(known, word, &std::pair<std::string, T>::first)->second;
  });
  format.show = [known](const T& value) {
    const auto at = std::ranges::find(known, value, &std::pair<std::string, T>::second);
    return at == known.end() ? "" : at->first;
  };
  return format;
}

/// `least` elements or more.
template <typename T, typename Element>
Format<std::vector<T>> list_of(const Format<Element>& element, int least = 0) {
  return {{Json::object().set("type", "array").set("items", element.schema).set("minItems", least),
           "list: " + element.words, element.keys},
          [=](const JsonReader& reader) {
            std::vector<T> all;
            for (const JsonReader& one : reader.elements())
              all.push_back(static_cast<T>(element.read(one)));
            if (static_cast<int>(all.size()) < least)
              reader.fail("a list of " + std::to_string(least) + " or more");
            return all;
          }};
}

/// One key of the objects that make an S.
template <typename S>
struct Option : OptionText {
  /// `place` is a member of S, or returns a reference to what the value is put. `otherwise` is the
  /// default in words, where it is no value that the key takes.
  template <typename Place, typename T>
  Option(const std::string& name, Place place, const Format<T>& format, const std::string& what,
         const std::string& otherwise = "")
      : OptionText{format.values(), name, what,
                   otherwise.empty() ? shown(place, format) : otherwise},
        at([place](S& object) -> void* { return &std::invoke(place, object); }),
        read([place, read = format.read](const JsonReader& value, S& to) {
          auto& member = std::invoke(place, to);
          member = static_cast<std::remove_reference_t<decltype(member)>>(read(value));
        }) {}

  /// The same, with values worth trying; where `where` does not hold, the key has no use, and the
  /// first of them alone is tried.
  [[nodiscard]] Option worth(const std::vector<Json>& values,
                             bool (*where)(const S&) = nullptr) && {
    tried = values;
    acts = where;
    return std::move(*this);
  }

  /// The same, with values worth trying for models that have a key.
  [[nodiscard]] Option worth_where(const std::string& model_has,
                                   const std::vector<Json>& values) && {
    tried = values;
    tried_where = model_has;
    return std::move(*this);
  }

  /// The same, without effect where `where` does not hold.
  [[nodiscard]] Option acting(bool (*where)(const S&)) && {
    acts = where;
    return std::move(*this);
  }

  std::function<void*(S& object)> at;  ///< where its value goes
  std::function<void(const JsonReader& value, S& to)> read;
  bool (*acts)(const S& object) = nullptr;  ///< beside all other keys; null: always

 private:
  template <typename Place, typename T>
  static std::string shown(Place place, const Format<T>& format) {
    S usual{};
    const auto& value = std::invoke(place, usual);
    if constexpr (std::is_convertible_v<decltype(value), T>) {
      if (format.show) return format.show(static_cast<T>(value));
      if constexpr (std::is_constructible_v<Json, T>) return Json(static_cast<T>(value)).text();
    }
    return "";
  }
};

/// The place of a member of a group of an object's members.
template <typename S, typename Group, typename Member>
auto within(Group S::*group, Member Group::*member) {
  return [=](S& object) -> Member& { return object.*group.*member; };
}

/// All keys of the objects that make an S.
template <typename S>
using OptionList = std::vector<Option<S>>;

/// `start`, changed by what an object says. Unknown keys are for the object's owner to refuse.
template <typename S>
S read_object(const OptionList<S>& options, const JsonReader& object, S start = {}) {
  for (const Option<S>& option : options) {
    const auto value = option.required() ? object.at(option.key) : object.find(option.key);
    if (value) option.read(*value, start);
  }
  return start;
}

/// The schema of a key's values, with its sentence and default.
Json schema_of(const OptionText& option);
/// The schema of an object with these keys and no others.
Json schema_of(const std::vector<OptionText>& options, const std::string& description = "");
/// Rows of a table in Markdown, key by key: values, default, sentence; `above` begins the keys.
std::string rows_of(const std::vector<OptionText>& options, const std::string& above = "");

/// An object as a value.
template <typename S>
Format<S> object_of(const OptionList<S>& options, S start = {}) {
  const std::vector<OptionText> keys(options.begin(), options.end());
  return {{schema_of(keys), "object", keys},
          [=](const JsonReader& reader) { return read_object(options, reader, start); }};
}

/// A short form, or an object that says more: one of several kinds, which first keys tell apart.
template <typename T>
Format<T> either(const Format<T>& brief, const std::vector<Format<T>>& objects) {
  Json schemas = Json::array().push(brief.schema);
  std::vector<OptionText> keys;
  std::string first_keys;
  for (const Format<T>& one : objects) {
    schemas.push(one.schema);
    keys.insert(keys.end(), one.keys.begin(), one.keys.end());
    first_keys += (first_keys.empty() ? "\"" : ", \"") + one.keys.front().key + "\"";
  }
  return {{Json::object().set("anyOf", schemas), brief.words + " or object", keys},
          [=](const JsonReader& reader) {
            if (!reader.is_object()) return brief.read(reader);
            for (const Format<T>& one : objects) {
              if (objects.size() == 1 || reader.has(one.keys.front().key)) return one.read(reader);
            }
            reader.fail("one of the keys " + first_keys);
          }};
}

}  // namespace stratagem

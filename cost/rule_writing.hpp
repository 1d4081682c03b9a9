// What declarations of kinds of rules have in common: formats of their keys, and the keys of all.
#pragma once

#include <string>
#include <vector>

#include "base/options.hpp"
#include "cost/rule_kind.hpp"

namespace stratagem::cost {

/// One of many words: neither tables nor errors list them all.
inline Format<std::string> name_of(const std::string& what, const std::vector<std::string>& known) {
  Format<std::string> format = text();
  format.words = what;
  format.read = [=](const JsonReader& reader) {
    check_word(reader, reader.text(), known, what);
    return reader.text();
  };
  return format;
}

/// A name that is not empty.
inline Format<std::string> some_text() {
  Format<std::string> format = text();
  format.schema.set("minLength", 1);
  format.read = [](const JsonReader& reader) {
    if (reader.text().empty()) reader.fail("some text", reader.dump());
    return reader.text();
  };
  return format;
}

inline Format<Bytes> size_per_element() {
  Format<Bytes> format = size();
  format.words = "size of at most 1000 B";
  format.read = [read = format.read](const JsonReader& reader) {
    const Bytes bytes = read(reader);
    if (bytes > 1000_B) reader.fail("at most 1000 B an element", reader.dump());
    return bytes;
  };
  return format;
}

inline Format<double> number() {
  return {{Json::object().set("type", "number"), "a number"},
          [](const JsonReader& reader) { return reader.number(); }};
}

/// The value itself, of rules that say one word.
template <typename T>
constexpr auto itself = [](T& value) -> T& { return value; };

template <typename Written>
using Check = void (*)(const Written&, const JsonReader&);

/// Under which precisions a rule holds; stack.cpp reads it.
inline OptionText of_precisions() {
  const Values values{Json::object()
                          .set("type", "array")
                          .set("minItems", 1)
                          .set("items", Json::object().set("$ref", "#/definitions/precision")),
                      "list of precisions",
                      {}};
  return {values, "precisions",
          "the rule holds with these only, and with the same with gradients in fp32; it counts "
          "before a rule about the same that holds with all",
          "all"};
}

/// A kind whose rules are made by options; every rule says why, too.
template <typename Written>
RuleKind kind(
    const RuleText& text, const OptionList<Written>& options,
    Check<Written> check = [](const Written&, const JsonReader&) {}) {
  const Option<std::string> because{"because", itself<std::string>, some_text(),
                                    "why: file, function and version of the framework's code",
                                    must_be_there};
  RuleKind says{text, {options.begin(), options.end()}, {}};
  says.keys.push_back(of_precisions());
  says.keys.push_back(because);
  says.read = [=](const JsonReader& reader) -> Rule {
    Written written = read_object(options, reader);
    std::string why;
    because.read(reader.at(because.key), why);
    check(written, reader);
    return written;
  };
  return says;
}

}  // namespace stratagem::cost

// One primitive of a plan as it is written: in a plan file, and in words.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"

namespace stratagem::strategies {

/// What a primitive says besides its subject.
struct Field {
  std::string key;
  Json value;
  std::string text;  ///< "stride 4"
};

/// A field whose text is its key and value.
inline Field field(const std::string& key, const std::string& value) {
  return {key, Json(value), key + " " + value};
}
inline Field field(const std::string& key, int value) {
  return {key, Json(value), key + " " + std::to_string(value)};
}

/// A list, in words its elements behind the key.
template <typename Element>
Field list_field(const std::string& key, const std::vector<Element>& elements) {
  Json list = Json::array();
  std::ostringstream words;
  words << key;
  for (const Element& element : elements) {
    list.push(element);
    words << ' ' << element;
  }
  return {key, std::move(list), words.str()};
}

struct Primitive {
  std::string name;  ///< "op-trans", "op-assign", "op-order" or "keep"
  Json subject;
  std::string text;  ///< the subject in words
  std::vector<Field> fields;
};

/// A primitive whose subject is a text, the same in the file and in words.
inline Primitive primitive(const std::string& name, const std::string& subject,
                           std::vector<Field> fields) {
  return {name, Json(subject), subject, std::move(fields)};
}

}  // namespace stratagem::strategies

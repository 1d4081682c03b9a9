// Copies value by value: reader and writer keep their documents to themselves.
#include "base/json_copy.hpp"

#include <string>

namespace stratagem {

Json copy_of(const JsonReader& reader) {
  if (reader.is_null()) return {};
  if (reader.is_number()) {
    const std::string digits = reader.dump();
    const bool whole = digits.size() <= 15 && digits.find_first_of(".eE") == std::string::npos;
    return whole ? Json(reader.whole_number()) : Json(reader.number());
  }
  if (reader.is_string()) return reader.text();
  if (reader.is_array()) {
    Json list = Json::array();
    for (const JsonReader& element : reader.elements()) list.push(copy_of(element));
    return list;
  }
  if (!reader.is_object()) return reader.boolean();
  Json result = Json::object();
  for (const std::string& name : reader.keys()) result.set(name, copy_of(reader.at(name)));
  return result;
}

}  // namespace stratagem

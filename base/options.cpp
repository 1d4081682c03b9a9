// Formats of values, and what schemas and tables say of options.
#include "base/options.hpp"

namespace stratagem {

Format<std::int64_t> whole(std::int64_t least, std::int64_t most) {
  return {{Json::object().set("type", "integer").set("minimum", least).set("maximum", most),
           std::to_string(least) + " to " + std::to_string(most)},
          [=](const JsonReader& reader) { return reader.between(least, most); }};
}

Format<double> positive(std::int64_t most) {
  const std::string values = "a number above 0, of at most " + std::to_string(most);
  return {{Json::object().set("type", "number").set("exclusiveMinimum", 0).set("maximum", most),
           values},
          [=](const JsonReader& reader) {
            const double value = reader.number();
            if (!(value > 0 && value <= static_cast<double>(most))) reader.fail(values);
            return value;
          }};
}

Format<bool> flag() {
  return {{Json::object().set("type", "boolean"), "`true` or `false`"},
          [](const JsonReader& reader) { return reader.boolean(); }};
}

Format<std::string> text() {
  return {{Json::object().set("type", "string"), "text"},
          [](const JsonReader& reader) { return reader.text(); }};
}

Format<std::string> words(const std::vector<std::string>& known) {
  Json list = Json::array();
  std::string values;
  for (const std::string& word : known) {
    list.push(word);
    values += (values.empty() ? "`" : ", `") + word + "`";
  }
  const Json schema = known.size() == 1 ? Json::object().set("const", known.front())
                                        : Json::object().set("enum", list);
  return {{schema, values},
          [known](const JsonReader& reader) { return reader.one_of(known); },
          [](const std::string& value) { return value; }};
}

Format<Bytes> size() {
  return {{Json::object().set("$ref", "#/definitions/size"), "size"}, [](const JsonReader& reader) {
            const auto bytes = reader.quantity<Bytes>();
            if (bytes.value <= 0) reader.fail("a size above zero, such as \"25 MiB\"");
            return bytes;
          }};
}

Json schema_of(const OptionText& option) {
  const std::string more = option.usual.empty() ? ""
                           : option.required()  ? " (" + option.usual + ")"
                                                : " (default " + option.usual + ")";
  return Json(option.schema).set("description", option.sentence + more);
}

Json schema_of(const std::vector<OptionText>& options, const std::string& description) {
  Json properties = Json::object();
  Json required;
  for (const OptionText& option : options) {
    properties.set(option.key, schema_of(option));
    if (option.required()) required.push(option.key);
  }
  Json schema = Json::object();
  if (!description.empty()) schema.set("description", description);
  schema.set("type", "object").set("additionalProperties", false);
  if (required.text() != "null") schema.set("required", required);
  return schema.set("properties", properties);
}

std::string rows_of(const std::vector<OptionText>& options, const std::string& above) {
  std::string rows;
  for (const OptionText& option : options) {
    const std::string key = above + "`" + option.key + "`";
    rows += "| " + key + " | " + option.words + " | " + option.usual + " | " + option.sentence +
            " |\n" + rows_of(option.keys, key + ": ");
  }
  return rows;
}

}  // namespace stratagem

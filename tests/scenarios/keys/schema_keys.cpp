// Walks schemas: properties, free keys, lists, alternatives and definitions.
#include "tests/scenarios/keys/schema_keys.hpp"

#include <algorithm>
#include <sstream>

namespace stratagem::keys {
namespace {

class Walk {
 public:
  explicit Walk(const ordered_json& root) : root_(root) {}

  void leaves(const ordered_json& written, const std::string& path, std::set<std::string>& found) {
    const ordered_json& schema = resolved(written);
    if (schema.contains("anyOf") && alternatives_of_values(schema)) {
      for (const ordered_json& one : schema.at("anyOf")) leaves(one, path, found);
    } else if (schema.contains("properties") || has_free_keys(schema)) {
      leaves_of_object(schema, path, found);
    } else if (schema.contains("items")) {
      leaves_of_list(schema.at("items"), path, found);
    } else if (schema.contains("enum")) {
      for (const ordered_json& word : schema.at("enum"))
        found.insert(path + " = " + (word.is_string() ? word.get<std::string>() : word.dump()));
    } else {
      found.insert(path);
    }
  }

  void objects(const ordered_json& written, const ordered_json& value, const std::string& pointer,
               bool in_list, std::vector<KnownKeys>& found) {
    std::vector<const ordered_json*> alternatives;
    flatten(written, alternatives);
    KnownKeys here{.pointer = pointer, .keys = {}};
    bool free = false;
    for (const ordered_json* schema : alternatives) {
      if (value.is_array() && schema->contains("items")) {
        for (std::size_t i = 0; i < value.size(); ++i)
          objects(schema->at("items"), value[i], pointer + "/" + std::to_string(i), true, found);
      }
      if (!value.is_object() || !takes(*schema, value, in_list)) continue;
      free = free || has_free_keys(*schema);
      for (const auto& [key, member] : value.items()) {
        if (schema->contains("properties") && schema->at("properties").contains(key)) {
          objects(schema->at("properties").at(key), member, pointer + "/" + key, false, found);
        } else if (has_free_keys(*schema)) {
          objects(schema->at("additionalProperties"), member, pointer + "/" + key, false, found);
        }
      }
      if (!schema->contains("properties")) continue;
      for (const auto& [key, unused] : schema->at("properties").items()) here.keys.insert(key);
    }
    if (value.is_object() && !free) found.push_back(here);
  }

 private:
  [[nodiscard]] const ordered_json& resolved(const ordered_json& schema) const {
    if (!schema.contains("$ref")) return schema;
    return root_.at(ordered_json::json_pointer(schema.at("$ref").get<std::string>().substr(1)));
  }

  static bool has_free_keys(const ordered_json& schema) {
    return schema.contains("additionalProperties") && schema.at("additionalProperties").is_object();
  }

  /// Not those that only say which keys must be there together.
  static bool alternatives_of_values(const ordered_json& schema) {
    return !schema.contains("properties");
  }

  void leaves_of_object(const ordered_json& schema, const std::string& path,
                        std::set<std::string>& found) {
    if (schema.contains("properties")) {
      for (const auto& [key, member] : schema.at("properties").items())
        leaves(member, path + "/" + key, found);
    }
    if (!has_free_keys(schema)) return;
    const ordered_json& member = schema.at("additionalProperties");
    const ordered_json names =
        schema.contains("propertyNames") ? resolved(schema.at("propertyNames")) : ordered_json{};
    if (!names.contains("enum")) return leaves(member, path + "/*", found);
    for (const ordered_json& name : names.at("enum"))
      leaves(member, path + "/" + name.get<std::string>(), found);
  }

  void leaves_of_list(const ordered_json& items, const std::string& path,
                      std::set<std::string>& found) {
    const bool by_name = items.contains("anyOf") &&
                         std::ranges::all_of(items.at("anyOf"),
                                             [](const auto& one) { return one.contains("$ref"); });
    if (!by_name) return leaves(items, path + "/*", found);
    for (const ordered_json& one : items.at("anyOf")) {
      const auto name = one.at("$ref").get<std::string>();
      leaves(one, path + name.substr(name.rfind('/')), found);
    }
  }

  void flatten(const ordered_json& written, std::vector<const ordered_json*>& alternatives) const {
    const ordered_json& schema = resolved(written);
    if (schema.contains("anyOf") && alternatives_of_values(schema)) {
      for (const ordered_json& one : schema.at("anyOf")) flatten(one, alternatives);
    } else {
      alternatives.push_back(&schema);
    }
  }

  /// Readers of a key ask for the keys of all its alternatives, those of a list for one kind's.
  static bool takes(const ordered_json& schema, const ordered_json& value, bool in_list) {
    if (!in_list || !schema.contains("required")) return true;
    return std::ranges::all_of(schema.at("required"), [&](const ordered_json& key) {
      return value.contains(key.get<std::string>());
    });
  }

  const ordered_json& root_;
};

std::vector<std::string> steps(const std::string& path) {
  std::vector<std::string> result;
  std::istringstream text(path);
  for (std::string step; std::getline(text, step, '/');) result.push_back(step);
  return result;
}

}  // namespace

std::set<std::string> leaf_keys(const ordered_json& schema, const std::string& prefix) {
  std::set<std::string> found;
  Walk(schema).leaves(schema, prefix, found);
  return found;
}

std::vector<KnownKeys> known_keys(const ordered_json& schema, const ordered_json& document) {
  std::vector<KnownKeys> found;
  Walk(schema).objects(schema, document, "", false, found);
  return found;
}

bool names(const std::string& pattern, const std::string& path) {
  const std::vector<std::string> wanted = steps(pattern);
  return std::ranges::equal(wanted, steps(path), [](const std::string& a, const std::string& b) {
    if (!a.ends_with('*')) return a == b;
    return a == "*" ? b.find(" = ") == std::string::npos : b.starts_with(a.substr(0, a.size() - 1));
  });
}

}  // namespace stratagem::keys

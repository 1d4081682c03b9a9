// YAML by yaml-cpp, with the references of OmegaConf, which Hydra and Megatron-Bridge use.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "imports/documents.hpp"

namespace stratagem::imports {
namespace {

/// Values by their whole names, such as "model.optim.name".
using Values = std::map<std::string, std::string>;

std::string joined(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}

void collect(const YAML::Node& node, const std::string& name, Values& values) {
  if (node.IsScalar()) values[name] = node.Scalar();
  if (!node.IsMap()) return;
  for (const auto& member : node)
    collect(member.second, joined(name, member.first.Scalar()), values);
}

/// The name that a reference in a section means: each "." before it but the first is a section up.
std::string absolute(std::string section, std::string name) {
  if (!name.starts_with(".")) return name;
  name.erase(0, 1);
  for (; name.starts_with("."); name.erase(0, 1))
    section.resize(section.find('.') == std::string::npos ? 0 : section.rfind('.'));
  return joined(section, name);
}

/// "multiply:4, 12288": their product, of whole numbers.
std::string product(const std::string& text) {
  static const std::regex factors(R"(multiply:\s*(\d{1,9})\s*,\s*(\d{1,9})\s*)");
  std::smatch match;
  if (!std::regex_match(text, match, factors)) return "";
  return std::to_string(std::stoll(match[1]) * std::stoll(match[2]));
}

class References {
 public:
  explicit References(const Values& values) : values_(values) {}

  /// A value with its references replaced, the innermost first; up to so many of them, so that a
  /// circle ends.
  [[nodiscard]] std::string resolved(std::string value, const std::string& section) const {
    constexpr int most = 64;
    std::size_t from = std::string::npos;
    for (int i = 0; i < most; ++i) {
      const std::size_t start = value.rfind("${", from);
      if (start == std::string::npos) break;
      const std::size_t end = value.find('}', start);
      const std::string found =
          end == std::string::npos ? "" : meant(value.substr(start + 2, end - start - 2), section);
      if (!found.empty()) {
        value.replace(start, end + 1 - start, found);
        from = std::string::npos;
      } else if (start == 0) {
        break;
      } else {
        from = start - 1;
      }
    }
    return value;
  }

 private:
  /// "" where it is not known. Launchers put a file below a section of its name ("training."), so
  /// that what comes first may be left out.
  [[nodiscard]] std::string meant(const std::string& reference, const std::string& section) const {
    if (const std::string result = product(reference); !result.empty()) return result;
    const std::string name = absolute(section, reference);
    for (const std::string& one : {name, name.substr(name.find('.') + 1)}) {
      if (const auto known = values_.find(one); known != values_.end()) return known->second;
    }
    return "";
  }

  const Values& values_;
};

/// Words that YAML 1.1 has for true and false, as JSON writes them.
std::string plain(const YAML::Node& node, const std::string& value) {
  if (node.Tag() == "!") return value;  // quoted: text
  std::string lower = value;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "true" || lower == "yes" || lower == "on") return "true";
  if (lower == "false" || lower == "no" || lower == "off") return "false";
  return value;
}

Json json_of(const YAML::Node& node, const std::string& name, const References& references) {
  if (node.IsScalar()) {
    const std::size_t last = name.rfind('.');
    const std::string section = last == std::string::npos ? "" : name.substr(0, last);
    const std::string value = references.resolved(node.Scalar(), section);
    return value == "???" ? Json() : Json(plain(node, value));
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& element : node) list.push(json_of(element, name, references));
    return list;
  }
  if (!node.IsMap()) return {};
  Json object = Json::object();
  for (const auto& member : node) {
    const std::string key = member.first.Scalar();
    object.set(key, json_of(member.second, joined(name, key), references));
  }
  return object;
}

}  // namespace

std::string json_of_yaml(const std::string& text, const std::string& file) {
  try {
    const YAML::Node root = YAML::Load(text);
    Values values;
    collect(root, "", values);
    return json_of(root, "", References(values)).text();
  } catch (const YAML::Exception& error) {
    throw InputError(file, "/line " + std::to_string(error.mark.line + 1), "YAML", error.msg);
  }
}

}  // namespace stratagem::imports

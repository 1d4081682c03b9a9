// Reads words as a shell would see them, as far as one need not run it, and JSON by its members.
#include "imports/said.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/nearest.hpp"

namespace stratagem::imports {
namespace {

/// Without comments and what continues a line; quotes, brackets of arrays and ends of commands part
/// words as blanks do.
std::string plain(const std::string& text) {
  std::string result;
  bool in_comment = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0;
    in_comment = text[at] != '\n' && (in_comment || (text[at] == '#' && begins));
    if (!in_comment) result += text[at];
  }
  for (std::size_t at = 0; (at = result.find("\\\n", at)) != std::string::npos;)
    result.replace(at, 2, "  ");
  for (char& one : result) {
    if (one == '"' || one == '\'' || one == '(' || one == ')' || one == ';') one = ' ';
  }
  return result;
}

/// Values of variables that are set where a line begins or after a semicolon: "TP=8", or the
/// default of "TP=${TENSOR:-8}". One that holds arguments, "ARGS='--lr 1'", has none here: its
/// arguments are read where they stand.
std::map<std::string, std::string> variables_of(const std::string& text) {
  static const std::regex assignment(R"((?:^|[\n;])[ \t]*(?:export\s+)?([A-Za-z_]\w*)=["']?)"
                                     R"((?:\$\{\w+:?-([\w.,/-]+)\}|([\w.,/][\w.,/-]*)))");
  std::map<std::string, std::string> values;
  for (std::sregex_iterator at(text.begin(), text.end(), assignment), end; at != end; ++at)
    values[(*at)[1]] = (*at)[2].matched ? (*at)[2] : (*at)[3];
  return values;
}

/// "$TP" and "${TP}" by what they were set to; "${TP:-8}" by the default. Others stay.
std::string replaced(const std::string& word, const std::map<std::string, std::string>& values) {
  if (word.find('$') == std::string::npos) return word;
  static const std::regex use(R"(\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+)))");
  std::string result;
  auto from = word.begin();
  for (std::sregex_iterator at(word.begin(), word.end(), use), end; at != end; ++at) {
    const std::string name = (*at)[1].matched ? (*at)[1] : (*at)[3];
    result.append(from, (*at)[0].first);
    const auto known = values.find(name);
    if (known != values.end())
      result += known->second;
    else if ((*at)[2].matched)
      result += (*at)[2];
    else
      result += at->str();
    from = (*at)[0].second;
  }
  return result.append(from, word.end());
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char one : text) {
    if (std::isspace(static_cast<unsigned char>(one)) == 0)
      words.back() += one;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// A program, a variable that holds arguments, or the next assignment.
bool ends_arguments(const std::string& word) {
  return word.ends_with(".py") || word.starts_with("$") || word.find('=') != std::string::npos;
}

/// Calls `add` for each member that is no object, with its name and value.
template <typename Add>
void each_member(const JsonReader& object, const std::string& before, const Add& add) {
  for (const std::string& key : object.keys()) {
    const JsonReader member = object.at(key);
    const std::string name = before + key;
    if (member.is_object())
      each_member(member, name + ".", add);
    else if (!member.is_null())
      add(name, member.is_string() ? member.text() : member.dump());
  }
}

}  // namespace

void Said::add(const std::string& name, std::vector<std::string> words, const std::string& text) {
  if (values_.contains(name)) std::erase(order_, name);
  order_.push_back(name);
  values_[name] = std::move(words);
  texts_[name] = text;
}

Said Said::arguments(const std::string& text) {
  Said result;
  const std::map<std::string, std::string> variables = variables_of(text);
  std::string name;
  for (const std::string& written : words_of(plain(text))) {
    const std::string word = replaced(written, variables);
    if (word.size() > 2 && word.starts_with("--")) {
      const std::size_t equals = std::min(word.find('='), word.size());
      name = word.substr(2, equals - 2);
      std::ranges::replace(name, '_', '-');
      const std::string value = equals < word.size() ? word.substr(equals + 1) : "";
      result.add(name, {}, "--" + name);
      if (!value.empty()) result.add(name, {value}, fmt::format("--{} {}", name, value));
    } else if (!name.empty() && !ends_arguments(word)) {
      result.values_[name].push_back(word);
      result.texts_[name] += " " + word;
    } else {
      if (!name.empty() && word.starts_with("$")) result.unset_.try_emplace(name, word);
      name.clear();
    }
  }
  return result;
}

Said Said::overrides(const std::string& text) {
  const auto named = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  Said result;
  for (const std::string& word : words_of(plain(text))) {
    const std::size_t from = word.find_first_not_of('+');
    const std::size_t equals = word.find('=');
    if (from == std::string::npos || equals == std::string::npos || equals <= from) continue;
    const std::string name = word.substr(from, equals - from), value = word.substr(equals + 1);
    if (std::ranges::all_of(name, named) && !value.empty() && value != "null")
      result.add(name, {value}, word);
  }
  return result;
}

Said Said::json(const std::string& text, const std::string& file) {
  Said result;
  each_member(JsonReader::from_text(text, file), "",
              [&](const std::string& name, const std::string& value) {
                result.add(name, {value}, name + ": " + value);
              });
  return result;
}

std::optional<std::string> Said::take(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    absent_.insert(name);
    return std::nullopt;
  }
  read_.insert(name);
  return found->second.empty() ? "" : found->second.front();
}

std::vector<std::string> Said::take_all(const std::string& name) {
  return take(name) ? values_.at(name) : std::vector<std::string>{};
}

bool Said::flag(const std::string& name) {
  const std::optional<std::string> value = take(name);
  if (!value || *value == "false" || *value == "False") return false;
  if (!texts_.at(name).starts_with("--") && !value->empty() && *value != "true" && *value != "True")
    throw InputError("", "/" + name, "true or false", *value);
  return true;
}

void Said::copy(const std::string& name, Json& object, const std::string& key) {
  if (const auto value = number(name)) object.set(key, *value);
}

std::optional<double> Said::real(const std::string& name) {
  const std::optional<std::string> word = take(name);
  if (!word) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(word->c_str(), &end);
  if (word->empty() || *end != '\0' || !std::isfinite(value))
    throw InputError("", "/" + name, "a number", word->empty() ? without_value(name) : *word);
  return value;
}

std::string Said::without_value(const std::string& name) const {
  const auto unset = unset_.find(name);
  if (unset == unset_.end()) return "nothing behind it";
  if (unset->second == "$") return "an expression of the shell, which is not computed";
  return unset->second + ", which the file gives no value";
}

std::optional<int> Said::number(const std::string& name, int least) {
  const std::optional<double> value = real(name);  // 5e7 is a whole number, too
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || *value < least || *value > 2e9)
    throw InputError("", "/" + name, fmt::format("a whole number of at least {}", least),
                     *take(name));
  return static_cast<int>(*value);
}

std::string Said::as_written(const std::string& argument) const {
  const auto known = texts_.find(argument.substr(0, argument.find(' ')));
  const bool other = known != texts_.end() && !known->second.starts_with("--");
  return other ? known->second : "--" + argument;
}

std::string Said::slip_of(const Value& value) const {
  for (std::string name : absent_) {
    if (!is_written_for(value.name, name)) continue;
    if (value.text.starts_with("--")) return "--" + name;
    std::ranges::replace(name, '-', '_');
    return name;
  }
  return "";
}

std::vector<Said::Value> Said::left() const {
  std::vector<Value> result;
  for (const std::string& name : order_) {
    if (!read_.contains(name)) result.push_back({name, texts_.at(name)});
  }
  return result;
}

}  // namespace stratagem::imports

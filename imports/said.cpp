// Pairs names with the words behind them, and reads JSON by its members.
#include "imports/said.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/nearest.hpp"
#include "imports/shell.hpp"

namespace stratagem::imports {
namespace {

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

/// Was it written on a command line, not in a document?
bool is_argument(const std::string& written) { return written.starts_with("--"); }

}  // namespace

void Said::add(const std::string& name, std::vector<std::string> words, const std::string& text) {
  if (values_.contains(name)) std::erase(order_, name);
  order_.push_back(name);
  values_[name] = std::move(words);
  texts_[name] = text;
}

Said Said::arguments(const std::string& text) {
  Said result;
  const Variables variables = variables_of(text);
  std::string name;
  // Before the script's own arguments, which count more. "=" ends them: it is no argument's value.
  for (const std::string& written : words_of_script(asked_of_slurm(text) + " =\n" + text)) {
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
  for (const std::string& word : words_of_script(text)) {
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

void Said::rename(const std::string& from, const std::string& to) {
  const auto found = values_.find(from);
  if (found == values_.end()) return;
  if (values_.contains(to)) {  // it counts more
    std::erase(order_, from);
  } else {
    values_[to] = found->second;
    texts_[to] = texts_.at(from);
    if (const auto unset = unset_.find(from); unset != unset_.end()) unset_[to] = unset->second;
    std::ranges::replace(order_, from, to);
  }
  values_.erase(from);
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
  if (!is_argument(texts_.at(name)) && !value->empty() && *value != "true" && *value != "True")
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
  return unset->second + ", to which neither the file nor the environment gives a plain value";
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
  const bool other = known != texts_.end() && !is_argument(known->second);
  return other ? known->second : "--" + argument;
}

std::string Said::slip_of(const Value& value) const {
  std::vector<std::string> near = meant(value.name, {absent_.begin(), absent_.end()});
  for (std::string& name : near) {
    if (is_argument(value.text))
      name.insert(0, "--");
    else
      std::ranges::replace(name, '-', '_');
  }
  return fmt::format("{}", fmt::join(near, " or "));
}

std::vector<Said::Value> Said::left() const {
  std::vector<Value> result;
  for (const std::string& name : order_) {
    if (!read_.contains(name)) result.push_back({name, texts_.at(name)});
  }
  return result;
}

}  // namespace stratagem::imports

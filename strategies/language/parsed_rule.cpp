// Gives every name of a rule its place: sizes, then variables, then let-names.
#include "strategies/language/parsed_rule.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/nearest.hpp"

namespace stratagem::strategies {
namespace {

const std::vector<std::string>& size_names() {
  static const std::vector<std::string> names = {"S", "M", "K", "R"};
  return names;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

std::vector<std::string> let_names(const OrderRule& rule) {
  std::vector<std::string> names;
  for (const auto& [name, text] : rule.let) {
    if (!is_name(name) || name == "min" || name == "max")
      throw InputError("", rule.path, "a let-name of letters, digits and _", "\"" + name + "\"");
    if (contains(names, name) || contains(size_names(), name))
      throw InputError("", rule.path, "a let-name that has no value yet", "\"" + name + "\"");
    names.push_back(name);
  }
  return names;
}

/// Names of the patterns that neither are sizes nor have values by let.
std::vector<std::string> variables(const ParsedRule& rule, const std::vector<std::string>& lets) {
  std::vector<std::string> result;
  for (const auto& [axis, expression] : rule.coordinates()) {
    for (const std::string& name : expression->names()) {
      if (!contains(size_names(), name) && !contains(lets, name) && !contains(result, name))
        result.push_back(name);
    }
  }
  return result;
}

/// A let-name that nothing uses is a slip: its other spelling in a pattern has become a variable.
void check_let_used(const ParsedRule& rule) {
  std::vector<bool> used(rule.names.size(), false);
  const auto mark = [&](const Expression& expression) {
    const std::vector<bool> more = places_used(rule, expression);
    for (std::size_t i = 0; i < used.size(); ++i) used[i] = used[i] || more[i];
  };
  for (const auto& [axis, expression] : rule.coordinates()) mark(*expression);
  if (rule.where) mark(*rule.where);
  for (std::size_t place = rule.first_let; place < rule.names.size(); ++place) {
    if (used[place]) continue;
    const std::string near = did_you_mean(
        rule.names[place],
        {rule.names.begin() + rule.first_variable, rule.names.begin() + rule.first_let});
    throw InputError("", rule.path, "a use of the let-name \"" + rule.names[place] + "\"" + near,
                     "no use");
  }
}

}  // namespace

std::vector<ParsedRule::Coordinate> ParsedRule::coordinates() const {
  std::vector<Coordinate> result;
  for (const CellPattern* pattern : {&before, &after}) {
    for (std::size_t axis = 0; axis < pattern->coordinates.size(); ++axis)
      result.push_back({static_cast<int>(axis), &pattern->coordinates[axis]});
  }
  return result;
}

ParsedRule parse_rule(const OrderRule& rule) {
  ParsedRule parsed{.before = parse_cell_pattern(rule.before, rule.path),
                    .after = parse_cell_pattern(rule.after, rule.path),
                    .names = size_names(),
                    .path = rule.path};
  const std::vector<std::string> lets = let_names(rule);
  parsed.first_variable = static_cast<int>(parsed.names.size());
  for (const std::string& name : variables(parsed, lets)) parsed.names.push_back(name);
  parsed.first_let = static_cast<int>(parsed.names.size());
  for (const auto& [name, text] : rule.let) {
    parsed.let.emplace_back(text, rule.path + "/let/" + name)
        .bind(parsed.names);  // knows the let-names before it
    parsed.names.push_back(name);
  }
  for (CellPattern* pattern : {&parsed.before, &parsed.after}) {
    for (Expression& coordinate : pattern->coordinates) coordinate.bind(parsed.names);
  }
  if (!rule.where.empty())
    parsed.where.emplace(rule.where, rule.path + "/where").bind(parsed.names);
  check_let_used(parsed);
  return parsed;
}

std::vector<bool> places_used(const ParsedRule& rule, const Expression& expression) {
  std::vector<bool> used(rule.names.size(), false);
  for (const int place : expression.places()) used[place] = true;
  for (std::size_t i = rule.let.size(); i-- > 0;) {  // a let-name uses only earlier ones
    if (!used[rule.first_let + i]) continue;
    for (const int place : rule.let[i].places()) used[place] = true;
  }
  return used;
}

}  // namespace stratagem::strategies

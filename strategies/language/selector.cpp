// Resolves selectors, and finds what somebody meant by one that names nothing.
#include "strategies/language/selector.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/nearest.hpp"
#include "strategies/language/characters.hpp"
#include "strategies/language/expression.hpp"
#include "strategies/language/glob.hpp"

namespace stratagem::strategies {
namespace {

/// What can be named: operators or segments.
struct Candidate {
  int id = 0;
  std::string name;
  int segment = 0;
};

/// What selectors choose from.
struct Choice {
  std::string what;  ///< for messages
  std::vector<Candidate> candidates;
};

/// The argument of stage(...); nullopt for other text.
std::optional<std::string> stage_argument(const std::string& text) {
  const std::size_t open = text.find_first_not_of(' ', std::string("stage").size());
  if (!text.starts_with("stage") || open == std::string::npos || text[open] != '(' ||
      text.back() != ')')
    return std::nullopt;
  return text.substr(open + 1, text.size() - open - 2);
}

std::vector<int> segments_of_stage(const std::string& argument, const SelectorScope& scope,
                                   const std::string& path) {
  const auto stages = static_cast<std::int64_t>(scope.stages.size());
  std::vector<std::string> names = {"S"};
  std::vector<std::int64_t> values = {stages};
  for (const auto& [name, value] : scope.values) {
    names.push_back(name);
    values.push_back(value);
  }
  Expression expression(argument, path);
  expression.bind(names);
  const std::int64_t stage = expression.evaluate(values);
  if (stage < 0 || stage >= stages) {
    throw InputError(
        "", path,
        "a stage from 0 to " + std::to_string(stages - 1) + " in \"stage(" + argument + ")\"",
        std::to_string(stage));
  }
  return scope.stages[stage];
}

/// The selector with each part that does not fit `name` replaced by the name's part: of
/// "layers.*.mlp.fc3" and "layers.0.mlp.fc1" it makes "layers.*.mlp.fc1"; of "layer.*", which is
/// shorter, "layers.**".
std::string adapted(const std::vector<std::string>& selector, const std::string& name,
                    const std::string& path) {
  std::vector<std::string> parts = split_outside_brackets(name, '.');
  // Behind a ** the parts of both no longer stand side by side.
  const auto end = std::ranges::find(selector, "**") - selector.begin();
  const bool open_ended = end < static_cast<std::ptrdiff_t>(selector.size());
  if (!open_ended && selector.size() > 1 && parts.size() > selector.size()) {
    parts.resize(selector.size());
    parts.back() = "**";
    return fmt::format("{}", fmt::join(parts, "."));
  }
  if (!open_ended && parts.size() != selector.size()) return name;
  if (open_ended && static_cast<std::ptrdiff_t>(parts.size()) < end) return name;
  for (std::ptrdiff_t i = 0; i < end; ++i) {
    if (Glob(selector[i], path).matches(parts[i])) parts[i] = selector[i];
  }
  parts.resize(end);
  parts.insert(parts.end(), selector.begin() + end, selector.end());
  return fmt::format("{}", fmt::join(parts, "."));
}

std::string nearest_candidate(const std::string& selector, const std::vector<Candidate>& candidates,
                              const std::string& path) {
  std::set<std::string> words;
  for (const Candidate& candidate : candidates) {
    words.insert(adapted(split_outside_brackets(selector, '.'), candidate.name, path));
    words.insert(candidate.name);
  }
  return did_you_mean(selector, {words.begin(), words.end()});
}

/// One item of a selector's list.
std::vector<int> select_item(const std::string& item, const Choice& choice,
                             const SelectorScope& scope, const std::string& path) {
  const auto argument = stage_argument(item);
  const std::vector<int> of_stage =
      argument ? segments_of_stage(*argument, scope, path) : std::vector<int>();
  const std::optional<Glob> glob = argument ? std::nullopt : std::optional(Glob(item, path));
  std::vector<int> selected;
  for (const Candidate& one : choice.candidates) {
    if (glob ? glob->matches(one.name) : std::ranges::count(of_stage, one.segment) > 0)
      selected.push_back(one.id);
  }
  if (selected.empty()) {
    throw InputError("", path,
                     "a selector that names at least one " + choice.what +
                         nearest_candidate(item, choice.candidates, path),
                     "\"" + item + "\"");
  }
  return selected;
}

std::vector<int> select(const std::string& selector, const Choice& choice,
                        const SelectorScope& scope, const std::string& path) {
  std::set<int> selected;
  for (const std::string& item : split_outside_brackets(selector, ',')) {
    const std::vector<int> ids = select_item(trimmed(item), choice, scope, path);
    selected.insert(ids.begin(), ids.end());
  }
  return {selected.begin(), selected.end()};
}

}  // namespace

std::vector<model::OpId> select_operators(const std::string& selector, const SelectorScope& scope,
                                          const std::string& path) {
  Choice choice{.what = "operator", .candidates = {}};
  for (int segment = 0; segment < std::ssize(scope.graph.segments); ++segment) {
    for (const model::OpId op : scope.graph.segments[segment].forward)
      choice.candidates.push_back({op, scope.graph.operators[op].name, segment});
  }
  return select(selector, choice, scope, path);
}

std::vector<int> select_segments(const std::string& selector, const SelectorScope& scope,
                                 const std::string& path) {
  Choice choice{.what = "segment", .candidates = {}};
  for (int segment = 0; segment < std::ssize(scope.graph.segments); ++segment)
    choice.candidates.push_back({segment, scope.graph.segments[segment].name, segment});
  return select(selector, choice, scope, path);
}

std::vector<std::string> stage_variables(const std::string& selector, const std::string& path) {
  std::set<std::string> names;
  for (const std::string& item : split_outside_brackets(selector, ',')) {
    const auto argument = stage_argument(trimmed(item));
    if (!argument) continue;
    const Expression stage(*argument, path);
    names.insert(stage.names().begin(), stage.names().end());
  }
  names.erase("S");
  return {names.begin(), names.end()};
}

}  // namespace stratagem::strategies

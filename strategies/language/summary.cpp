// Walks the tree of name parts from its leaves: children that need the same pattern share it.
#include "strategies/language/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/characters.hpp"
#include "strategies/language/glob.hpp"

namespace stratagem::strategies {
namespace {

struct Name {
  std::vector<std::string> parts;
  bool chosen = false;
};
using Names = std::vector<const Name*>;

/// Lists keep the order in which things were first seen, so that a plan prints in model order.
template <typename Value>
using Listed = std::vector<std::pair<std::string, Value>>;

template <typename Value>
Value& entry(Listed<Value>& list, const std::string& key) {
  const auto found =
      std::ranges::find_if(list, [&](const auto& element) { return element.first == key; });
  return found == list.end() ? list.emplace_back(key, Value()).second : found->second;
}

/// The rest of a name from its `depth`-th part on.
std::string rest(const Name& name, std::size_t depth) {
  return fmt::format("{}", fmt::join(std::span(name.parts).subspan(depth), "."));
}

/// The number that a part is, if ranges match it: no sign, no leading zeros.
std::optional<std::int64_t> number(const std::string& part) {
  std::int64_t value = 0;
  const char* const end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, value);
  if (error != std::errc() || stop != end || std::to_string(value) != part || value < 0)
    return std::nullopt;
  return value;
}

/// "3", "{fc1,fc2}", "[0-3]" or "{[0-3],8}": runs of three and more numbers become ranges.
std::string one_of(const std::vector<std::string>& parts) {
  std::vector<std::string> items;
  std::set<std::int64_t> numbers;
  for (const std::string& part : parts) {
    if (const auto value = number(part)) {
      numbers.insert(*value);
    } else {
      items.push_back(part);
    }
  }
  while (!numbers.empty()) {
    const std::int64_t first = *numbers.begin();
    std::int64_t last = first;
    while (numbers.contains(last + 1)) ++last;
    if (last - first < 2) last = first;
    items.push_back(last == first ? std::to_string(first)
                                  : "[" + std::to_string(first) + "-" + std::to_string(last) + "]");
    numbers.erase(numbers.begin(), numbers.upper_bound(last));
  }
  if (items.size() == 1) return items.front();
  return fmt::format("{{{}}}", fmt::join(items, ","));
}

/// Does a pattern, read from the `depth`-th part on, match none but chosen names?
bool only_chosen(const std::string& pattern, const Names& names, std::size_t depth) {
  const Glob glob(pattern, "");
  return std::ranges::all_of(
      names, [&](const Name* name) { return name->chosen || !glob.matches(rest(*name, depth)); });
}

/// Patterns, from the `depth`-th part on, for the chosen ones of names that are alike before it.
std::vector<std::string> describe(const Names& names, std::size_t depth) {
  const auto chosen = std::ranges::count_if(names, &Name::chosen);
  if (chosen == 0) return {};
  if (chosen == static_cast<std::ptrdiff_t>(names.size()) && chosen > 1) return {"**"};
  std::vector<std::string> patterns;
  Listed<Names> children;
  for (const Name* name : names) {
    if (depth < name->parts.size()) {
      entry(children, name->parts[depth]).push_back(name);
    } else if (name->chosen) {
      patterns.emplace_back();
    }
  }
  Listed<std::vector<std::string>> parts_before;  // by pattern of what follows
  for (const auto& [part, below] : children) {
    for (const std::string& pattern : describe(below, depth + 1))
      entry(parts_before, pattern).push_back(part);
  }
  for (const auto& [pattern, parts] : parts_before) {
    const std::string after = pattern.empty() ? "" : "." + pattern;
    const bool any = parts.size() > 1 && only_chosen("*" + after, names, depth);
    patterns.push_back((any ? "*" : one_of(parts)) + after);
  }
  return patterns;
}

/// Drops patterns whose every name is also named by another: widening to * may leave such.
std::vector<std::string> without_redundant(std::vector<std::string> patterns, const Names& names) {
  std::vector<int> times(names.size(), 0);
  std::vector<std::vector<std::size_t>> named(patterns.size());
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    const Glob glob(patterns[p], "");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!glob.matches(rest(*names[i], 0))) continue;
      named[p].push_back(i);
      ++times[i];
    }
  }
  for (std::size_t p = patterns.size(); p-- > 0;) {
    if (!std::ranges::all_of(named[p], [&](std::size_t i) { return times[i] > 1; })) continue;
    for (const std::size_t i : named[p]) --times[i];
    patterns.erase(patterns.begin() + static_cast<std::ptrdiff_t>(p));
  }
  return patterns;
}

}  // namespace

std::string summarize(const std::vector<std::string>& chosen, const std::vector<std::string>& all) {
  const std::set<std::string> wanted(chosen.begin(), chosen.end());
  std::vector<Name> entries;
  entries.reserve(all.size());
  for (const std::string& name : all)
    entries.push_back({split_outside_brackets(name, '.'), wanted.contains(name)});
  expects(
      std::ranges::count_if(entries, &Name::chosen) == static_cast<std::ptrdiff_t>(wanted.size()),
      "names to be summarized are among all names, which differ");
  Names names;
  names.reserve(all.size());
  for (const Name& name : entries) names.push_back(&name);
  return fmt::format("{}", fmt::join(without_redundant(describe(names, 0), names), ", "));
}

std::string selector_of_operators(const model::Graph& graph, const std::vector<model::OpId>& ops) {
  std::vector<std::string> all;
  std::vector<std::string> chosen;
  for (const model::Segment& segment : graph.segments) {
    for (const model::OpId op : segment.forward) all.push_back(graph.operators[op].name);
  }
  for (const model::OpId op : ops) chosen.push_back(graph.operators[op].name);
  return summarize(chosen, all);
}

std::string selector_of_segments(const model::Graph& graph, const std::vector<int>& segments) {
  std::vector<std::string> all;
  std::vector<std::string> chosen;
  for (const model::Segment& segment : graph.segments) all.push_back(segment.name);
  for (const int segment : segments) chosen.push_back(all[segment]);
  return summarize(chosen, all);
}

}  // namespace stratagem::strategies

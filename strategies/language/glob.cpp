// Multiplies braces out, then matches part by part with backtracking: names have few parts.
#include "strategies/language/glob.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/characters.hpp"

namespace stratagem::strategies {
namespace {

constexpr std::size_t most_patterns = 10'000;

std::size_t closing_brace(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at;
  }
  return std::string::npos;
}

/// All texts that choices in braces leave, in order.
std::vector<std::string> expand_braces(const std::string& text, const std::string& path) {
  std::vector<std::string> open = {text};
  std::vector<std::string> done;
  while (!open.empty()) {
    const std::string first = open.back();
    open.pop_back();
    const std::size_t begin = first.find_first_of("{}");
    if (begin == std::string::npos) {
      done.push_back(first);
      continue;
    }
    const std::size_t end = first[begin] == '{' ? closing_brace(first, begin) : std::string::npos;
    if (end == std::string::npos) throw InputError("", path, "braces in pairs", "\"" + text + "\"");
    auto choices = split_outside_brackets(first.substr(begin + 1, end - begin - 1), ',');
    std::ranges::reverse(choices);
    for (const std::string& choice : choices)
      open.push_back(first.substr(0, begin) + choice + first.substr(end + 1));
    if (open.size() + done.size() > most_patterns) {
      throw InputError("", path, "at most " + std::to_string(most_patterns) + " choices in braces",
                       "more in \"" + text + "\"");
    }
  }
  return done;
}

/// "" has no parts: what is left of a name behind its last one.
std::vector<std::string> parts_of(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : split_outside_brackets(text, '.');
}

/// The number that a text begins with, and how many characters it has; nullopt if there is none,
/// or none that 64 bits hold.
std::optional<std::pair<std::int64_t, std::size_t>> leading_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.starts_with('-') || error != std::errc()) return std::nullopt;
  return std::pair(number, static_cast<std::size_t>(end - text.data()));
}

/// "[2-11]", at the beginning of a pattern.
struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::size_t length = 0;
};

std::optional<Range> leading_range(std::string_view text) {
  const auto least = leading_number(text.substr(1));
  const std::size_t dash = least ? least->second + 1 : text.size();
  if (dash >= text.size() || text[dash] != '-') return std::nullopt;
  const auto most = leading_number(text.substr(dash + 1));
  const std::size_t end = most ? dash + 1 + most->second : text.size();
  if (end >= text.size() || text[end] != ']' || most->first < least->first) return std::nullopt;
  return Range{least->first, most->first, end + 1};
}

void check_part(std::string_view part, const std::string& whole, const std::string& path) {
  if (part.empty() || (part != "**" && part.find("**") != std::string_view::npos)) {
    throw InputError("", path, "parts between dots that have letters, are \"*\" or are \"**\"",
                     "\"" + whole + "\"");
  }
  for (std::size_t at = part.find('['); at != std::string_view::npos; at = part.find('[', at + 1)) {
    if (!leading_range(part.substr(at)))
      throw InputError("", path, "ranges such as [0-3]", "\"" + whole + "\"");
  }
}

bool part_matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    return part_matches(pattern.substr(1), text) ||
           (!text.empty() && part_matches(pattern, text.substr(1)));
  }
  if (pattern.front() == '[') {
    const Range range = *leading_range(pattern);
    const auto number = leading_number(text);
    const bool zeros = number && number->second > 1 && text.front() == '0';
    return number && !zeros && range.least <= number->first && number->first <= range.most &&
           part_matches(pattern.substr(range.length), text.substr(number->second));
  }
  return !text.empty() && pattern.front() == text.front() &&
         part_matches(pattern.substr(1), text.substr(1));
}

using PartSpan = std::span<const std::string>;

bool parts_match(PartSpan pattern, PartSpan name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == "**") {
    return parts_match(pattern.subspan(1), name) ||
           (!name.empty() && parts_match(pattern, name.subspan(1)));
  }
  return !name.empty() && part_matches(pattern.front(), name.front()) &&
         parts_match(pattern.subspan(1), name.subspan(1));
}

}  // namespace

Glob::Glob(const std::string& text, const std::string& path) {
  for (const std::string& choice : expand_braces(text, path)) {
    std::vector<std::string> parts = split_outside_brackets(choice, '.');
    for (const std::string& part : parts) check_part(part, text, path);
    // Two ** in a row say no more than one, but take longer to match.
    const auto again = [](const std::string& a, const std::string& b) {
      return a == "**" && a == b;
    };
    parts.erase(std::unique(parts.begin(), parts.end(), again), parts.end());
    patterns_.push_back(std::move(parts));
  }
}

bool Glob::matches(std::string_view name) const {
  const std::vector<std::string> parts = parts_of(std::string(name));
  return std::ranges::any_of(patterns_, [&](const auto& one) { return parts_match(one, parts); });
}

}  // namespace stratagem::strategies

// Multiplies braces out, then matches part by part with backtracking: names have few parts.
#include "strategies/language/glob.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

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
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (;;) {
    const std::size_t dot = text.find('.');
    parts.push_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

/// The digits that `text` begins with, if they are a number without leading zeros.
std::string_view leading_number(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const std::string_view digits = text.substr(0, end - text.begin());
  return digits.size() > 1 && digits.front() == '0' ? std::string_view() : digits;
}

[[noreturn]] void refuse_part(const std::string& pattern, const std::string& path) {
  throw InputError("", path, "parts between dots that have letters, are \"*\" or are \"**\"",
                   "\"" + pattern + "\"");
}

bool in_range(std::string_view digits, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && number >= least && number <= most;
}

}  // namespace

Glob::Glob(const std::string& text, const std::string& path) {
  for (const std::string& choice : expand_braces(text, path)) {
    if (choice.empty()) refuse_part(text, path);
    Pattern& pattern = patterns_.emplace_back();
    for (const std::string_view part : parts_of(choice)) {
      const bool any_parts = part == "**";
      // Two in a row say no more than one, but take longer to match.
      if (any_parts && !pattern.empty() && pattern.back().empty()) continue;
      pattern.push_back(any_parts ? Part() : parse_part(std::string(part), text, path));
    }
  }
}

Glob::Part Glob::parse_part(const std::string& text, const std::string& whole,
                            const std::string& path) {
  if (text.empty() || text.find("**") != std::string::npos) refuse_part(whole, path);
  Part part;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '*') {
      part.push_back({.kind = Piece::Kind::any});
      ++at;
    } else if (text[at] == '[') {
      part.push_back(parse_range(text, at, whole, path));
    } else {
      const std::size_t end = std::min(text.find_first_of("*[", at), text.size());
      part.push_back({.kind = Piece::Kind::text, .text = text.substr(at, end - at)});
      at = end;
    }
  }
  return part;
}

Glob::Piece Glob::parse_range(const std::string& text, std::size_t& at, const std::string& whole,
                              const std::string& path) {
  Piece piece{.kind = Piece::Kind::range};
  const char* const end = text.data() + text.size();
  const auto least = std::from_chars(text.data() + at + 1, end, piece.least);
  const bool dash = least.ec == std::errc() && least.ptr != end && *least.ptr == '-';
  const auto most = dash ? std::from_chars(least.ptr + 1, end, piece.most)
                         : std::from_chars_result{.ptr = end, .ec = std::errc::invalid_argument};
  if (most.ec != std::errc() || most.ptr == end || *most.ptr != ']' || piece.least < 0 ||
      piece.most < piece.least)
    throw InputError("", path, "ranges such as [0-3]", "\"" + whole + "\"");
  at = static_cast<std::size_t>(most.ptr - text.data()) + 1;
  return piece;
}

bool Glob::part_matches(const Part& part, std::size_t piece, std::string_view text) {
  if (piece == part.size()) return text.empty();
  const Piece& first = part[piece];
  if (first.kind == Piece::Kind::text) {
    return text.starts_with(first.text) &&
           part_matches(part, piece + 1, text.substr(first.text.size()));
  }
  if (first.kind == Piece::Kind::range) {
    const std::string_view digits = leading_number(text);
    return in_range(digits, first.least, first.most) &&
           part_matches(part, piece + 1, text.substr(digits.size()));
  }
  for (std::size_t taken = 0; taken <= text.size(); ++taken) {
    if (part_matches(part, piece + 1, text.substr(taken))) return true;
  }
  return false;
}

bool Glob::pattern_matches(const Pattern& pattern, std::size_t part,
                           const std::vector<std::string_view>& names, std::size_t name) {
  if (part == pattern.size()) return name == names.size();
  if (!pattern[part].empty()) {
    return name < names.size() && part_matches(pattern[part], 0, names[name]) &&
           pattern_matches(pattern, part + 1, names, name + 1);
  }
  for (std::size_t next = name; next <= names.size(); ++next) {
    if (pattern_matches(pattern, part + 1, names, next)) return true;
  }
  return false;
}

bool Glob::matches(std::string_view name) const {
  const std::vector<std::string_view> names = parts_of(name);
  return std::ranges::any_of(
      patterns_, [&](const Pattern& pattern) { return pattern_matches(pattern, 0, names, 0); });
}

std::vector<std::string> split_outside_brackets(const std::string& text, char separator) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '{' || c == '(') ++depth;
    if (c == '}' || c == ')') --depth;
    if (c == separator && depth == 0) {
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

}  // namespace stratagem::strategies

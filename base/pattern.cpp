// Matches names against patterns.
#include "base/pattern.hpp"

#include <cstddef>
#include <set>

#include "base/nearest.hpp"

namespace stratagem {
namespace {

/// "layers.0.mlp.fc1" as somebody would write it for all layers: "layers.*.mlp.fc1".
std::string for_all_layers(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c < '0' || c > '9' || (!text.empty() && text.back() != '.' && text.back() != '*')) {
      text += c;
    } else if (text.empty() || text.back() != '*') {
      text += '*';
    }
  }
  return text;
}

}  // namespace

bool matches(std::string_view name, std::string_view pattern) {
  std::size_t n = 0, p = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;  // stands for nothing at first
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {  // the last star stands for one character more
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string fitting_patterns(std::string_view pattern, const std::vector<std::string>& names) {
  std::set<std::string> words, whole;
  for (const std::string& name : names) {
    const std::string all = for_all_layers(name);
    whole.insert(all);
    words.insert({name, all});
    for (std::size_t dot = all.find('.'); dot != std::string::npos; dot = all.find('.', dot + 1))
      words.insert(all.substr(0, dot + 1) + "*");
  }
  if (std::string near = did_you_mean(pattern, {words.begin(), words.end()}); !near.empty())
    return near;
  std::string text;
  for (int few = 3; const std::string& one : whole) {
    if (few-- == 0) break;
    text += (text.empty() ? ", such as \"" : ", \"") + one + '"';
  }
  return text;
}

}  // namespace stratagem

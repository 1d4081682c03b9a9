// Takes patterns apart: the pass, then expressions between commas; chains into cells and back.
#include "strategies/language/chain.hpp"

#include <algorithm>
#include <charconv>

#include "base/input_error.hpp"
#include "strategies/language/characters.hpp"

namespace stratagem::strategies {

using placement::Cell;

namespace {

void read_pass(CellPattern& pattern, const std::string& word, const std::string& path) {
  if (word == "F") return;
  if (word == "B" || word == "W") {
    pattern.pass = word == "B" ? placement::CellPass::backward : placement::CellPass::weight;
    return;
  }
  int repeat = 0;
  if (word.starts_with("F")) {
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + 1, end, repeat);
    if (error != std::errc() || stop != end) repeat = 0;
  }
  if (repeat < 1) throw InputError("", path, "a pass F, B, W, F1, F2, ...", "\"" + word + "\"");
  pattern.repeat = repeat - 1;
}

/// A piece of the text, and whether a + stood before it.
struct Word {
  std::string text;
  bool joined = false;
};

/// Cuts behind every closing parenthesis of a cell.
std::vector<Word> words(const std::string& text) {
  std::vector<Word> result;
  Word word;
  int depth = 0;
  for (const char c : text) {
    const bool between = depth == 0 && word.text.empty();
    if (between && c == '+' && !result.empty() && !word.joined) {
      word.joined = true;
    } else if (!between || (c != ' ' && c != '\t')) {
      word.text += c;
    }
    if (c == '(') ++depth;
    if (c == ')' && --depth == 0) {
      result.push_back(word);
      word = {};
    }
  }
  if (!word.text.empty() || word.joined) result.push_back(word);
  return result;
}

Cell parse_cell(const std::string& text, const Extent& extent, const std::string& path) {
  CellPattern pattern = parse_cell_pattern(text, path);
  const std::vector<std::int64_t> sizes = {extent.stages, extent.micro_batches, extent.slices,
                                           extent.repeats};
  if (pattern.coordinates.size() == 2 && extent.slices > 1)
    throw InputError("", path, "a stage, a micro-batch and a slice", "\"" + text + "\"");
  const std::vector<std::string> names = {"S", "M", "K", "R"};
  std::vector<int> at(3, 0);
  for (std::size_t i = 0; i < pattern.coordinates.size(); ++i) {
    const auto known = [&](const std::string& name) { return std::ranges::count(names, name) > 0; };
    if (!std::ranges::all_of(pattern.coordinates[i].names(), known)) {
      throw InputError("", path,
                       "numbers in the cells of a chain, or a rule, which is a list of two cells: "
                       "[\"F(i, m)\", \"F(i, m+1)\"]",
                       "\"" + text + "\"");
    }
    pattern.coordinates[i].bind(names);
    const std::int64_t value = pattern.coordinates[i].evaluate(sizes);
    if (value < 0 || value >= sizes[i]) {
      constexpr const char* what[] = {"stage", "micro-batch", "slice"};
      throw InputError("", path,
                       std::string("a ") + what[i] + " from 0 to " + std::to_string(sizes[i] - 1) +
                           " in \"" + text + "\"",
                       std::to_string(value));
    }
    at[i] = static_cast<int>(value);
  }
  Cell cell{.stage = at[0], .micro_batch = at[1], .pass = pattern.pass, .slice = at[2]};
  if (pattern.pass == placement::CellPass::forward)
    cell.repeat = pattern.repeat.value_or(extent.repeats - 1);
  if (cell.repeat >= extent.repeats)
    throw InputError("", path, "a repeat up to F" + std::to_string(extent.repeats), text);
  return cell;
}

std::string word_of(const Cell& cell, const Extent& extent) {
  std::string text = to_text(cell.pass);
  if (cell.pass == placement::CellPass::forward && extent.repeats > 1)
    text += std::to_string(cell.repeat + 1);
  text += "(" + std::to_string(cell.stage) + "," + std::to_string(cell.micro_batch);
  if (extent.slices > 1) text += "," + std::to_string(cell.slice);
  return text + ")";
}

/// One text for each cell, or for each pair that stands in `together`.
std::vector<std::string> words_of(const Chain& chain, const Extent& extent) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < chain.cells.size(); ++i) {
    const std::string word = word_of(chain.cells[i], extent);
    const bool joined = i > 0 && std::ranges::binary_search(
                                     chain.together, std::pair(chain.cells[i - 1], chain.cells[i]));
    if (joined) {
      result.back() += "+" + word;
    } else {
      result.push_back(word);
    }
  }
  return result;
}

}  // namespace

CellPattern parse_cell_pattern(const std::string& text, const std::string& path) {
  const std::string whole = trimmed(text);
  const std::size_t open = whole.find('(');
  if (open == std::string::npos || whole.back() != ')')
    throw InputError("", path, "a cell such as \"F(i, m)\"", "\"" + text + "\"");
  CellPattern pattern;
  read_pass(pattern, trimmed(whole.substr(0, open)), path);
  const std::string arguments = whole.substr(open + 1, whole.size() - open - 2);
  for (const std::string& argument : split_outside_brackets(arguments, ','))
    pattern.coordinates.emplace_back(trimmed(argument), path);
  if (pattern.coordinates.size() != 2 && pattern.coordinates.size() != 3) {
    throw InputError("", path, "a stage, a micro-batch and perhaps a slice in \"" + text + "\"",
                     std::to_string(pattern.coordinates.size()) + " coordinates");
  }
  return pattern;
}

Chain parse_chain(const std::string& text, const Extent& extent, const std::string& path) {
  Chain chain;
  bool in_pair = false;
  for (const Word& word : words(text)) {
    const Cell cell = parse_cell(word.text, extent, path);
    if (word.joined && in_pair)
      throw InputError("", path, "two cells that run together", "a third, " + word.text);
    if (word.joined) chain.together.emplace_back(chain.cells.back(), cell);
    in_pair = word.joined;
    chain.cells.push_back(cell);
  }
  return chain;
}

bool is_one_cell(const std::string& text) { return words(text).size() == 1; }

ChainText text_of(const Chain& chain, const Extent& extent) {
  constexpr std::size_t shown = 12;
  constexpr std::size_t tail = 4;
  const std::vector<std::string> words = words_of(chain, extent);
  const bool is_long = words.size() > shown + tail;
  ChainText text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text.whole += (i == 0 ? "" : " ") + words[i];
    if (is_long && i >= shown - tail && i + tail < words.size()) continue;
    const bool after_gap = is_long && i + tail == words.size();
    text.abbreviated += (i == 0 ? "" : after_gap ? " ... " : " ") + words[i];
  }
  if (is_long) text.abbreviated += " (" + std::to_string(words.size()) + " in all)";
  return text;
}

}  // namespace stratagem::strategies

// Finds words by what they mean, by how they begin, and by edit distance.
#include "base/nearest.hpp"

#include <algorithm>
#include <cstddef>

#include "base/other_words.hpp"

namespace stratagem {
namespace {

/// Letters to insert, delete, replace or swap with their neighbour (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the usual table: row i holds the distances from the first i letters of a.
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

/// Words that begin with another, or else have it within.
std::vector<std::string> longer_than(std::string_view word, const std::vector<std::string>& words) {
  constexpr std::size_t most = 6;  // more are no help
  if (word.size() < 3) return {};
  std::vector<std::string> beginning, within;
  for (const std::string& one : words) {
    const std::size_t at = folded(one).find(folded(word));
    if (at == std::string::npos) continue;
    std::vector<std::string>& found = at == 0 ? beginning : within;
    if (found.size() < most) found.push_back(one);
  }
  return beginning.empty() ? within : beginning;
}

}  // namespace

std::vector<std::string> meant(std::string_view word, const std::vector<std::string>& words) {
  for (const std::string& plural : words)
    if (plural == std::string(word) + "s") return {plural};
  if (auto one = meant_by(word, words)) return {*one};
  std::vector<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : words) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    if (3 * (longer - shorter) > longer) continue;  // at least that many letters to insert
    const std::size_t distance = edit_distance(word, candidate);
    // One slip in three letters; "tp" is no slip of "dp".
    if (3 * distance > std::max(word.size(), candidate.size())) continue;
    if (best.empty() || distance < best_distance) {
      best = {candidate};
      best_distance = distance;
    }
  }
  const std::vector<std::string> longer = longer_than(word, words);
  const bool one_letter_off = best_distance == 1 && word.size() > 4;  // "dgx" is no slip of "hgx"
  return longer.empty() || one_letter_off ? best : longer;
}

bool is_written_for(std::string_view written, const std::string& word) {
  if (meant_by(written, {word})) return true;
  const std::size_t distance = edit_distance(written, word);
  return distance <= 2 && 4 * distance <= word.size();
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& words,
                         const std::string& quote) {
  const std::vector<std::string> all = meant(word, words);
  if (all.empty()) return "";
  std::string text = " (did you mean ";
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 == all.size() ? " or " : ", ";
    text += quote;
    text += all[i];
    text += quote;
  }
  return text + "?)";
}

}  // namespace stratagem

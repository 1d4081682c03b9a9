// The words that somebody probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// The word that `word` means (other_words.hpp); else one that is a letter off; else those that
/// begin with it, or have it within, six at most; else the nearest by edit distance, if it is near
/// enough to be a slip of the fingers.
std::vector<std::string> meant(std::string_view word, const std::vector<std::string>& words);

/// Is `written` one letter or two off, or another program's name for `word`?
bool is_written_for(std::string_view written, const std::string& word);

/// ` (did you mean "gelu"?)`, with all words that are meant, each after `quote` and before it; ""
/// where none is.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words,
                         const std::string& quote = "\"");

}  // namespace stratagem

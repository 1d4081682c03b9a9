// What people of the field write for a word that is used here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// A word as it is compared with others: in lower case, "-" as "_".
std::string folded(std::string_view word);

/// Of the words that may be used the one that means what was written: "tensor" for "tp". Letters'
/// case does not count. Nothing if there is none.
std::optional<std::string> meant_by(std::string_view written,
                                    const std::vector<std::string>& words);

}  // namespace stratagem

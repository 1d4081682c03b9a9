// Small texts about JSON that the reader and the schema check share.
#include "base/json_text.hpp"

#include <algorithm>

namespace stratagem {

std::string child_path(const std::string& path, std::string_view key) {
  std::string result = path + "/";
  for (const char letter : key) {
    if (letter == '~') {
      result += "~0";
    } else if (letter == '/') {
      result += "~1";
    } else {
      result += letter;
    }
  }
  return result;
}

std::string syntax_error(std::string_view text, std::size_t byte, std::string_view what) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  // "[json.exception.parse_error.101] parse error at ...: syntax error while parsing value -
  // REASON"
  const std::size_t reason = what.find(" - ");
  if (reason != std::string_view::npos) what.remove_prefix(reason + 3);
  // What was read last may end within a letter of several bytes.
  std::string words(what);
  std::erase_if(words, [](char one) { return static_cast<unsigned char>(one) >= 0x80; });
  // Between members a comma may stand, too; and a key is missing only behind a comma.
  for (const auto& [says, means] :
       {std::pair("; expected '}'", "; expected ',' or '}'"),
        std::pair("; expected ']'", "; expected ',' or ']'"),
        std::pair("unexpected '}'; expected string literal", "unexpected '}' behind a comma")}) {
    const std::size_t at = words.find(says);
    if (at != std::string::npos) words.replace(at, std::string_view(says).size(), means);
  }
  return "line " + std::to_string(lines + 1) + ", column " + std::to_string(column) + ": " + words;
}

}  // namespace stratagem

// Small texts about JSON that the reader and the schema check share.
#include "base/json_text.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/input_error.hpp"

namespace stratagem {

std::string shortened(std::string text) {
  constexpr std::size_t longest = 60;
  constexpr std::string_view dots = "...";
  if (text.size() <= longest) return text;
  std::size_t end = longest - dots.size();
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (end > 0 && continues(end)) --end;
  return text.substr(0, end).append(dots);
}

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
  return "line " + std::to_string(lines + 1) + ", column " + std::to_string(column) + ": " +
         std::string(what);
}

std::string read_text(const std::string& file) {
  constexpr const char* expected = "a file that can be read";
  if (std::filesystem::is_directory(file)) throw InputError(file, "", expected, "a folder");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError(file, "", expected, std::generic_category().message(errno));
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace stratagem
